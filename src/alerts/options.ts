// `alerts` of the configuration: rules, sinks, who is told what, silences. Checked once; the answer is what all parts use.
import { clean } from '../core/attempt-error.ts'
import { SEVERITIES } from '../core/alert-facts.ts'
import type { Severity } from '../core/alert-facts.ts'
import { checkRemind, settleRules, watchedKinds } from '../core/alert-options.ts'
import type { CustomRule, RulesOptions } from '../core/alert-options.ts'
import type { Rule } from '../core/alerting.ts'
import type { Silence } from '../core/alert-silence.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkKnownOptions, checkName, invalidOption, shown } from '../core/names.ts'
import { checkSink } from './sink-options.ts'
import type { AnySinkOptions, MakeSink } from './sink-options.ts'

export interface AlertOptions {
  /** Named in every notice. Default `millrace`. */
  readonly system?: string
  /** Between two looks. Default 15 s. */
  readonly every?: Duration
  /** Tell again this often what still fires and nobody acknowledged; rules may say otherwise. Default: not. */
  readonly remind?: Duration | false
  readonly rules?: RulesOptions
  readonly custom?: readonly CustomRule[]
  /** By name. Default: the log. */
  readonly sinks?: Readonly<Record<string, AnySinkOptions>>
  /** Names of sinks by severity. A severity that is not named goes to all of them. */
  readonly routes?: Partial<Readonly<Record<Severity, readonly string[]>>>
  readonly silences?: readonly SilenceOptions[]
}

export interface SilenceOptions {
  /** A rule or the key of an alert. */
  readonly match?: string
  readonly queue?: string
  /** ISO 8601 or a Date. Absent: as long as it stands here. */
  readonly until?: string | Date
  readonly reason: string
}

/** The checked configuration. Holds secrets, inside functions alone. */
export interface AlertPlan {
  readonly system: string
  readonly everyMs: number
  readonly rules: readonly Rule[]
  readonly kinds: readonly string[]
  readonly sinks: ReadonlyMap<string, MakeSink>
  readonly silences: readonly Silence[]
  /** Names of sinks. */
  readonly routes: Readonly<Record<Severity, readonly string[]>>
}

const OPTIONS = [
  'system',
  'every',
  'remind',
  'rules',
  'custom',
  'sinks',
  'routes',
  'silences',
] as const satisfies readonly (keyof AlertOptions)[]

const EVERY = { minMs: 1_000, maxMs: 10 * 60_000 }

export function checkAlerts(options: AlertOptions = {}): AlertPlan {
  checkKnownOptions(options, OPTIONS, 'alerts')
  const { system = 'millrace', rules = {}, custom = [], sinks = { log: { type: 'log' } } } = options
  if (typeof system !== 'string' || !/^[^\p{Cc}]{1,100}$/u.test(system)) {
    throw invalidOption('alerts.system', system, 'a name of 1-100 characters')
  }
  const made = checkSinks(sinks)
  const defaults = { remindMs: checkRemind(options.remind ?? false, 'alerts.remind') }
  const settled = settleRules(rules, custom, defaults)
  return {
    system,
    everyMs: parseDuration(options.every ?? DEFAULTS.alertEveryMs, 'alerts.every', EVERY),
    rules: settled,
    kinds: watchedKinds(rules),
    sinks: made,
    routes: checkRoutes(options.routes ?? {}, [...made.keys()]),
    silences: checkSilences(options.silences ?? [], settled),
  }
}

function checkSinks(sinks: Readonly<Record<string, AnySinkOptions>>): ReadonlyMap<string, MakeSink> {
  if (sinks === null || typeof sinks !== 'object') throw invalidOption('alerts.sinks', sinks, 'sinks by name')
  const entries = Object.entries(sinks)
  if (entries.length > LIMITS.sinksMax)
    throw invalidOption('alerts.sinks', entries.length, `at most ${LIMITS.sinksMax}`)
  return new Map(entries.map(([name, one]) => [checkName(name, 'sink'), checkSink(one, `alerts.sinks.${name}`)]))
}

function checkRoutes(
  routes: Partial<Readonly<Record<Severity, readonly string[]>>>,
  names: readonly string[],
): AlertPlan['routes'] {
  checkKnownOptions(routes, SEVERITIES, 'alerts.routes')
  const to = (severity: Severity): readonly string[] => {
    const given = routes[severity] ?? names
    if (!Array.isArray(given)) throw invalidOption(`alerts.routes.${severity}`, given, 'an array of names of sinks')
    const unknown = given.find((name) => !names.includes(name))
    if (unknown === undefined) return [...new Set(given)]
    throw invalidOption(`alerts.routes.${severity}`, unknown, `one of the sinks ${names.join(', ')}`)
  }
  return { info: to('info'), warning: to('warning'), critical: to('critical') }
}

function checkSilences(silences: readonly SilenceOptions[], rules: readonly Rule[]): readonly Silence[] {
  if (!Array.isArray(silences) || silences.length > LIMITS.silencesMax) {
    throw invalidOption('alerts.silences', silences, `an array of at most ${LIMITS.silencesMax}`)
  }
  return silences.map((silence: SilenceOptions, index) => {
    const what = `alerts.silences[${index}]`
    checkKnownOptions(silence, ['match', 'queue', 'until', 'reason'], what)
    const { match = null, queue = null, until, reason } = silence
    if (match !== null) checkMatch(match, rules, `${what}.match`)
    if (queue !== null) checkName(queue, 'queue')
    if (match === null && queue === null) throw invalidOption(what, silence, 'of a rule (match) or of a queue')
    const untilMs = until === undefined ? null : new Date(until).getTime()
    if (Number.isNaN(untilMs)) throw invalidOption(`${what}.until`, until, "a time such as '2030-01-31T12:00:00Z'")
    return {
      id: `config-${index + 1}`,
      match,
      queue,
      untilMs,
      reason: checkSilenceReason(reason, `${what}.reason`),
      by: 'configuration',
      createdAtMs: 0,
    }
  })
}

/** A rule, or `rule:name` for one alert of it. */
export function checkMatch(match: unknown, rules: readonly Pick<Rule, 'name'>[], what: string): string {
  const text = typeof match === 'string' ? match : ''
  const known = rules.map(({ name }) => name)
  const rule = text.includes(':') ? text.slice(0, text.indexOf(':')) : text
  if (known.includes(rule) && text.length <= LIMITS.keyCharsMax) return text
  throw invalidOption(what, match, `a rule (${known.join(', ')}), or the key of an alert such as depth:mail`)
}

export function checkSilenceReason(value: unknown, what: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= LIMITS.alertTextCharsMax)
    return clean(value.trim())
  throw invalidOption(what, value, `a reason of 1-${LIMITS.alertTextCharsMax} characters, for whoever wonders later`)
}

/** What a store may name and this configuration does not have any more. */
export function unknownSink(name: string, plan: Pick<AlertPlan, 'sinks'>): string {
  return `there is no sink ${shown(name)}; configured: ${[...plan.sinks.keys()].join(', ') || 'none'}`
}
