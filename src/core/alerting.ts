// What becomes of an alert: it waits until it has lasted, fires, is told once, is told again if somebody asked for that,
// and is over when it has been over for a while. Pure: the same facts and states give the same decision, whoever leads.
//
//   (nothing) ──over──▶ pending ──over for `for`──▶ firing ──under for `recover`──▶ recovered, told, gone
//
// Time is counted in steps between two looks, each at most `stepMaxMs`: neither a clock that jumps nor a pause of all
// leaders makes anything fire or recover that was not seen to.
import type { AlertFacts, Severity, StoreFacts } from './alert-facts.ts'
import type { FactsPart, Reading, RuleTerms, TermsOf } from './alert-rules.ts'
import { silenceOf } from './alert-silence.ts'
import type { Silence } from './alert-silence.ts'
import { LIMITS } from './limits.ts'
import { shortKey, shortText } from './short-text.ts'

/** A rule with its terms settled: built in or of the user. */
export interface Rule {
  readonly name: string
  /** Absent: it decides for itself what it knows. */
  readonly part?: FactsPart
  readonly termsOf: TermsOf
  /** Those with terms of their own, for people. */
  readonly own?: ReadonlyMap<string, RuleTerms | null>
  readonly read: (facts: AlertFacts, termsOf: TermsOf) => readonly Reading[]
}

export interface AlertState {
  readonly key: string
  readonly rule: string
  readonly connection: string
  /** What it is about: a queue, a kind, a schedule, a server, a pool. */
  readonly name: string
  readonly queue: string | null
  readonly severity: Severity
  readonly phase: 'pending' | 'firing' | 'recovered'
  /** Pending: how long it has been over. Firing: how long it has been under. */
  readonly heldMs: number
  readonly seenAtMs: number
  readonly startedAtMs: number
  readonly firedAtMs: number | null
  readonly value: number
  readonly limit: number
  readonly text: string
  /** Notices of this incident so far; 0: nobody has been told. */
  readonly told: number
  readonly toldAtMs: number | null
  readonly ack: Acknowledgement | null
  /** The silence that keeps it from being told. */
  readonly silence: string | null
  /** Decided, and perhaps not handed over yet. */
  readonly owed: readonly Notice[]
}

export interface Acknowledgement {
  readonly by: string
  readonly atMs: number
  readonly note: string | null
}

export type NoticeKind = 'firing' | 'reminder' | 'acknowledged' | 'recovered'

export interface Notice {
  readonly kind: NoticeKind
  /** The same for all notices about one thing, now and later. */
  readonly key: string
  /** The same for all notices from firing to recovered. */
  readonly incident: string
  /** Of this incident, from 1; `incident` and `no` together are told at least once, so a receiver may drop a second one. */
  readonly no: number
  /** For the log alone: a silence, or nobody had been told of what is over. */
  readonly quiet: boolean
  readonly rule: string
  readonly connection: string
  readonly name: string
  readonly queue: string | null
  readonly severity: Severity
  readonly text: string
  readonly value: number
  readonly limit: number
  readonly startedAtMs: number
  readonly atMs: number
  /** Who said so, and why: an acknowledgement, a silence. */
  readonly note: string | null
  /** Where each supervisor looks for itself, the one that saw it; absent: the leader, for all of them. */
  readonly host?: string
}

/** What is to be written under one key; `after` null: taken away. */
export interface AlertChange {
  readonly key: string
  readonly after: AlertState | null
}

export interface EvaluateInput {
  readonly rules: readonly Rule[]
  readonly facts: AlertFacts
  readonly states: ReadonlyMap<string, AlertState>
  readonly silences: readonly Silence[]
  readonly nowMs: number
  /** The most that one look may count for. */
  readonly stepMaxMs: number
}

export interface Evaluation {
  readonly changes: readonly AlertChange[]
  /** Rules that threw. */
  readonly broken: readonly { readonly rule: string; readonly error: unknown }[]
  /** More alerts than are kept; these were left out. */
  readonly dropped: number
}

/** How often the numbers of an alert that fires are brought up to date. */
const REFRESH_MS = 60_000

export function evaluate(input: EvaluateInput): Evaluation {
  const { rules, facts, states } = input
  const changes: AlertChange[] = []
  const broken: { rule: string; error: unknown }[] = []
  const handled = new Set<string>()
  let [kept, dropped] = [states.size, 0]
  for (const rule of rules) {
    let readings: readonly Reading[]
    try {
      readings = rule.read(facts, rule.termsOf)
    } catch (error) {
      broken.push({ rule: rule.name, error })
      for (const state of states.values()) if (state.rule === rule.name) handled.add(state.key)
      continue
    }
    for (const reading of readings) {
      const terms = rule.termsOf(reading.queue ?? nameIn(reading))
      const key = alertKey(rule.name, reading)
      if (terms === null || handled.has(key)) continue
      handled.add(key)
      const before = states.get(key)
      if (before === undefined && reading.state === 'over' && kept >= LIMITS.alertsMax) {
        dropped += 1
        continue
      }
      const after = step(before, { rule: rule.name, key, reading, terms }, input)
      if (before === undefined && after !== null) kept += 1
      if (after !== (before ?? null)) changes.push({ key, after })
    }
  }
  const byName = new Map(rules.map((rule) => [rule.name, rule]))
  for (const before of states.values()) {
    const rule = byName.get(before.rule)
    if (handled.has(before.key) || !isKnown(before, rule, facts)) continue
    const after = vanish(before, rule, input)
    if (after !== before) changes.push({ key: before.key, after })
  }
  return { changes, broken, dropped }
}

interface Seen {
  readonly rule: string
  readonly key: string
  readonly reading: Reading
  readonly terms: RuleTerms
}

function step(before: AlertState | undefined, seen: Seen, input: EvaluateInput): AlertState | null {
  const { reading } = seen
  // What is over and not told yet is told first.
  if (reading.state === 'unknown' || before?.phase === 'recovered') return before ?? null
  if (before?.phase === 'firing') return stepFiring(before, seen, input)
  if (reading.state !== 'over') return null
  const { nowMs } = input
  const pending = before === undefined ? begin(seen, nowMs) : { ...before, ...numbersOf(seen), seenAtMs: nowMs }
  const heldMs = before === undefined ? 0 : before.heldMs + elapsedMs(before, input)
  if (heldMs < seen.terms.forMs) return { ...pending, heldMs }
  return tell({ ...pending, phase: 'firing', heldMs: 0, firedAtMs: nowMs }, 'firing', input)
}

function stepFiring(before: AlertState, seen: Seen, input: EvaluateInput): AlertState {
  const { reading, terms } = seen
  if (reading.state !== 'under') {
    const isOld = input.nowMs - before.seenAtMs >= REFRESH_MS || input.nowMs < before.seenAtMs
    const isFresh = before.heldMs > 0 || isOld
    // Of the same severity to its end: that goes to those who were told of the beginning.
    const numbers = { ...numbersOf(seen), severity: before.severity }
    const now = isFresh ? { ...before, ...numbers, heldMs: 0, seenAtMs: input.nowMs } : before
    return goOn(now, terms, input)
  }
  return recover(before, terms.recoverMs, input)
}

/** The first look at which it is better counts for nothing, and is remembered as one all the same. */
function recover(before: AlertState, recoverMs: number, input: EvaluateInput): AlertState {
  const heldMs = before.heldMs === 0 ? 1 : before.heldMs + elapsedMs(before, input)
  if (recoverMs > 0 && heldMs < recoverMs) return { ...before, heldMs, seenAtMs: input.nowMs }
  return tell({ ...before, phase: 'recovered', seenAtMs: input.nowMs }, 'recovered', input)
}

/** While it fires: the end of a silence, and reminders. */
function goOn(state: AlertState, terms: RuleTerms, input: EvaluateInput): AlertState {
  if (state.told === 0)
    return silenceOf(input.silences, state, input.nowMs) === null ? tell(state, 'firing', input) : state
  if (terms.remindMs === null || state.ack !== null || state.toldAtMs === null) return state
  // A clock that was set back must not put the next reminder off for good.
  if (input.nowMs < state.toldAtMs) return { ...state, toldAtMs: input.nowMs }
  if (input.nowMs - state.toldAtMs < terms.remindMs) return state
  return silenceOf(input.silences, state, input.nowMs) === null ? tell(state, 'reminder', input) : state
}

/** What it was about is gone, perhaps to come back; or its rule was switched off, and then at once. */
function vanish(before: AlertState, rule: Rule | undefined, input: EvaluateInput): AlertState | null {
  if (before.phase === 'pending') return null
  if (before.phase === 'recovered') return before
  return recover(before, rule?.termsOf(before.queue ?? nameIn(before))?.recoverMs ?? 0, input)
}

/** A silence keeps back what is new. What somebody was told of, he is told the end of. */
function tell(state: AlertState, kind: NoticeKind, { silences, nowMs }: EvaluateInput): AlertState {
  const silence = kind === 'firing' ? silenceOf(silences, state, nowMs) : null
  const quiet = silence !== null || (kind === 'recovered' && state.told === 0)
  const notice = noticeOf(state, kind, nowMs, quiet, silence === null ? null : `silenced: ${silence.reason}`)
  return {
    ...state,
    silence: silence?.id ?? null,
    ...(!quiet && { told: state.told + 1, toldAtMs: nowMs }),
    owed: [...state.owed, notice],
  }
}

export function acknowledge(state: AlertState, ack: Acknowledgement): AlertState {
  const note = ack.note === null ? `by ${ack.by}` : `by ${ack.by}: ${ack.note}`
  const notice = noticeOf(state, 'acknowledged', ack.atMs, state.told === 0, note)
  return { ...state, ack, told: state.told + (state.told === 0 ? 0 : 1), owed: [...state.owed, notice] }
}

function noticeOf(state: AlertState, kind: NoticeKind, atMs: number, quiet: boolean, note: string | null): Notice {
  const { key, rule, connection, name, queue, severity, text, value, limit, startedAtMs, told } = state
  const about = { key, rule, connection, name, queue, severity, text, value, limit, startedAtMs }
  return { kind, ...about, incident: incidentOf(state), no: told + 1, quiet, atMs, note }
}

export function incidentOf({ key, startedAtMs }: Pick<AlertState, 'key' | 'startedAtMs'>): string {
  return `${key}@${startedAtMs}`
}

function begin(seen: Seen, nowMs: number): AlertState {
  const { connection, name, queue } = seen.reading
  return {
    key: seen.key,
    rule: seen.rule,
    connection,
    name,
    queue,
    phase: 'pending',
    heldMs: 0,
    seenAtMs: nowMs,
    startedAtMs: nowMs,
    firedAtMs: null,
    ...numbersOf(seen),
    told: 0,
    toldAtMs: null,
    ack: null,
    silence: null,
    owed: [],
  }
}

function numbersOf({ reading, terms }: Seen): Pick<AlertState, 'value' | 'limit' | 'text' | 'severity'> {
  const text = shortText(reading.text, LIMITS.alertTextCharsMax)
  return { value: reading.value, limit: reading.limit, text, severity: terms.severity }
}

function elapsedMs(before: AlertState, { nowMs, stepMaxMs }: EvaluateInput): number {
  return Math.min(Math.max(nowMs - before.seenAtMs, 0), stepMaxMs)
}

/** Missing facts decide nothing. A connection that is no longer configured is known: it is gone. */
function isKnown({ connection }: AlertState, rule: Rule | undefined, facts: AlertFacts): boolean {
  // Switched off or taken out of the configuration.
  if (rule === undefined) return true
  const { part } = rule
  if (part === undefined) return facts.pools !== null && facts.stores.every(isComplete)
  if (part === 'pools') return facts.pools !== null
  const store: StoreFacts | undefined = facts.stores.find((one) => one.connection === connection)
  return store === undefined ? facts.stores.length > 0 : store[part] !== null
}

/** A rule of the user may have looked at anything: what it does not name may be what was not answered. */
function isComplete(store: StoreFacts): boolean {
  return Object.values(store).every((part) => part !== null)
}

/** `depth:mail`, `depth:mail/high`, `depth:other/mail` on another connection; short enough for a note. */
export function alertKey(rule: string, { connection, name }: Pick<Reading, 'connection' | 'name'>): string {
  return shortKey(`${rule}:${connection === 'default' ? '' : `${connection}/`}${name}`, LIMITS.keyCharsMax)
}

/** The pool of `host/pool`; anything else is its own name. */
function nameIn({ name }: Pick<Reading, 'name'>): string {
  return name.slice(name.lastIndexOf('/') + 1)
}
