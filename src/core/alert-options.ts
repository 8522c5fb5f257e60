// The rules as a user wants them: limits, severities, windows, for all or for one queue, kind or schedule, and rules of
// his own. Checked once, when the configuration is read; a typing error is told, not ignored.
import { SEVERITIES } from './alert-facts.ts'
import type { AlertFacts, Severity } from './alert-facts.ts'
import type { Rule } from './alerting.ts'
import { ALERT_RULES, RULE_NAMES } from './alert-rules.ts'
import type { LimitKind, Reading, RuleKind, RuleName, RuleTerms } from './alert-rules.ts'
import { parseDuration } from './duration.ts'
import type { Duration } from './duration.ts'
import { LIMITS } from './limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from './names.ts'
import { LANES } from './priority.ts'
import { shortText } from './short-text.ts'

/** Which limits a rule has: docs/alerts.md. Counts are whole numbers, durations `'5m'`, shares `0.8`. */
export interface RuleOptions {
  readonly severity?: Severity
  /** Over the limit for this long before it fires. */
  readonly for?: Duration
  /** Under it for this long before it is over. */
  readonly recover?: Duration
  /** Told again this often until somebody acknowledges it; false: once. */
  readonly remind?: Duration | false
  readonly max?: Duration | null
  /** Of `depth`, by lane. */
  readonly high?: number | null
  readonly normal?: number | null
  readonly low?: number | null
  /** Of `dead-letters`. */
  readonly growth?: number | null
  /** Of `failure-ratio`. */
  readonly sample?: number
  /** Otherwise for single ones; false: not for this one. */
  readonly queues?: Readonly<Record<string, OwnRuleOptions | false>>
  readonly kinds?: Readonly<Record<string, OwnRuleOptions | false>>
  readonly schedules?: Readonly<Record<string, OwnRuleOptions | false>>
}

export type OwnRuleOptions = Omit<RuleOptions, 'queues' | 'kinds' | 'schedules'>
export type RulesOptions = { readonly [Name in RuleName]?: RuleOptions | false }

/**
 * A rule of your own. `check` is given the facts of one look and says what it finds. What it no longer names is over, unless
 * some of the facts are missing.
 */
export interface CustomRule {
  readonly name: string
  readonly severity?: Severity
  readonly for?: Duration
  readonly recover?: Duration
  readonly remind?: Duration | false
  readonly check: (facts: AlertFacts) => readonly CustomFinding[]
}

export interface CustomFinding {
  /** What it is about, if there are several. */
  readonly about?: string
  readonly queue?: string
  readonly firing: boolean
  readonly text: string
  readonly value?: number
}

const TERMS = ['severity', 'for', 'recover', 'remind'] as const
const OWN_MAX = 1_000
const CUSTOM_MAX = 100
const FINDINGS_MAX = 200
const WINDOW_MAX_MS = 24 * 60 * 60_000
const REMIND = { minMs: 60_000, maxMs: 30 * 24 * 60 * 60_000 }

export interface RuleDefaults {
  /** For rules that do not say. */
  readonly remindMs: number | null
}

export function settleRules(
  options: RulesOptions,
  custom: readonly CustomRule[],
  defaults: RuleDefaults,
): readonly Rule[] {
  checkKnownOptions(options, RULE_NAMES, 'alerts.rules')
  if (!Array.isArray(custom)) throw invalidOption('alerts.custom', custom, 'an array of rules')
  if (custom.length > CUSTOM_MAX) throw invalidOption('alerts.custom', custom.length, `at most ${CUSTOM_MAX} rules`)
  const own = custom.map((rule) => settleCustom(rule, defaults))
  const names = own.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalidOption('alerts.custom', twice, 'names that differ')
  return [...RULE_NAMES.map((name) => settle(name, options[name], defaults)), ...own]
}

/** The kinds of job whose failures somebody wants to know. */
export function watchedKinds(options: RulesOptions): readonly string[] {
  const rule = options['kind-failed']
  if (rule === undefined || rule === false) return []
  return Object.entries(rule.kinds ?? {}).flatMap(([kind, own]) => (own === false ? [] : [kind]))
}

/** Does a lane of this queue have a limit of its own? Then its lanes are counted. */
export function hasLaneLimit(rules: readonly Rule[], queue: string): boolean {
  const limits = rules.find(({ name }) => name === ('depth' satisfies RuleName))?.termsOf(queue)?.limits ?? {}
  return LANES.some((lane) => (limits[lane] ?? null) !== null)
}

/** The option that holds terms for single ones, by what a rule is about. */
const OWN: Readonly<Partial<Record<RuleKind['about'], 'queues' | 'kinds' | 'schedules'>>> = {
  queue: 'queues',
  kind: 'kinds',
  schedule: 'schedules',
}

function settle(name: RuleName, options: RuleOptions | false | undefined, defaults: RuleDefaults): Rule {
  const kind: RuleKind = ALERT_RULES[name]
  const { part, read } = kind
  if (options === false) return { name, part, read, termsOf: () => null }
  const what = `alerts.rules.${name}`
  const singles = OWN[kind.about]
  const known = [...TERMS, ...Object.keys(kind.limits), ...(singles === undefined ? [] : [singles])]
  checkKnownOptions(options ?? {}, known, what)
  const usual: RuleTerms = {
    severity: kind.severity,
    forMs: kind.forMs,
    recoverMs: kind.recoverMs,
    remindMs: defaults.remindMs,
    limits: Object.fromEntries(Object.entries(kind.limits).map(([limit, one]) => [limit, one.usual])),
  }
  const terms = termsOf(options ?? {}, usual, kind.limits, what)
  const own = new Map<string, RuleTerms | null>()
  const named = (singles === undefined ? undefined : options?.[singles]) ?? {}
  if (Object.keys(named).length > OWN_MAX) throw invalidOption(`${what}.${singles}`, 'more', `at most ${OWN_MAX}`)
  for (const [single, given] of Object.entries(named)) {
    const at = `${what}.${singles}.${single}`
    checkName(single, kind.about === 'kind' ? 'job' : kind.about === 'schedule' ? 'schedule' : 'queue')
    if (given !== false) checkKnownOptions(given, [...TERMS, ...Object.keys(kind.limits)], at)
    own.set(single, given === false ? null : termsOf(given, terms, kind.limits, at))
  }
  return { name, part, read, own, termsOf: (single) => (own.has(single) ? (own.get(single) ?? null) : terms) }
}

function termsOf(
  options: OwnRuleOptions,
  usual: RuleTerms,
  limits: Readonly<Record<string, LimitKind>>,
  what: string,
): RuleTerms {
  const given = options as Readonly<Record<string, unknown>>
  const own = Object.entries(limits).map(([name, kind]) => {
    const value = given[name]
    return [name, value === undefined ? (usual.limits[name] ?? null) : checkLimit(value, kind, `${what}.${name}`)]
  })
  return { ...timesOf(options, usual, what), limits: Object.fromEntries(own) as RuleTerms['limits'] }
}

function timesOf(
  { severity, for: lasts, recover, remind }: Pick<OwnRuleOptions, (typeof TERMS)[number]>,
  usual: Omit<RuleTerms, 'limits'>,
  what: string,
): Omit<RuleTerms, 'limits'> {
  const window = { maxMs: WINDOW_MAX_MS }
  return {
    severity: severity === undefined ? usual.severity : checkSeverity(severity, `${what}.severity`),
    forMs: lasts === undefined ? usual.forMs : parseDuration(lasts, `${what}.for`, window),
    recoverMs: recover === undefined ? usual.recoverMs : parseDuration(recover, `${what}.recover`, window),
    remindMs: remind === undefined ? usual.remindMs : checkRemind(remind, `${what}.remind`),
  }
}

export function checkSeverity(value: unknown, what: string): Severity {
  const known = SEVERITIES.find((one) => one === value)
  if (known === undefined) throw invalidOption(what, value, `one of ${SEVERITIES.join(', ')}`)
  return known
}

export function checkRemind(value: Duration | false, what: string): number | null {
  return value === false ? null : parseDuration(value, what, REMIND)
}

function checkLimit(value: unknown, { unit, most }: LimitKind, what: string): number | null {
  if (value === null) return null
  switch (unit) {
    case 'count':
      return checkInteger(value, what, 0, most ?? Number.MAX_SAFE_INTEGER)
    case 'duration':
      return parseDuration(value as Duration, what) // says itself what is none
    case 'share':
      if (typeof value === 'number' && value > 0 && value <= 1) return value
      throw invalidOption(what, value, 'a share such as 0.8')
  }
}

function settleCustom(rule: CustomRule, defaults: RuleDefaults): Rule {
  checkKnownOptions(rule, [...TERMS, 'name', 'check'], 'a rule of alerts.custom')
  const { name, check } = rule
  checkName(name, 'rule')
  if ((RULE_NAMES as readonly string[]).includes(name)) {
    throw invalidOption('alerts.custom', name, 'a name that no built-in rule has')
  }
  if (typeof check !== 'function') throw invalidOption(`alerts.custom ${name}.check`, check, 'a function')
  const usual = { severity: 'warning', forMs: 0, recoverMs: 0, remindMs: defaults.remindMs } as const
  const terms: RuleTerms = { ...timesOf(rule, usual, `alerts.custom ${name}`), limits: {} }
  return {
    name,
    termsOf: () => terms,
    read: (facts) => check(facts).slice(0, FINDINGS_MAX).map(readingOf),
  }
}

function readingOf({ about = 'it', queue, firing, text, value = 0 }: CustomFinding): Reading {
  // It becomes part of keys, which have no control characters.
  const name = shortText(String(about), LIMITS.nameCharsMax).replaceAll(/\p{Cc}/gu, ' ')
  const state = firing === true ? 'over' : 'under'
  return { connection: 'default', name, queue: queue ?? null, state, value, limit: 0, text: String(text) }
}
