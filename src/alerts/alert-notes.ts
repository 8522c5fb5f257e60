// Alerts in the store: the state of each, silences, the log, and how the numbers of the queues move. Every change of a state
// is a compare-and-set on what was read, so two leaders, or a leader and a person, never undo each other. What a supervisor
// sees by itself (store-watch.ts) is here only to be shown.
import type { AlertState, Notice } from '../core/alerting.ts'
import type { Silence } from '../core/alert-silence.ts'
import type { Trend } from '../core/alert-trend.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { shortKey } from '../core/short-text.ts'
import type { Note, NoteStore } from '../store/note-store.ts'

export const ALERTS_SPACE = 'alerts'
export const SILENCES_SPACE = 'alert-silences'
export const ALERT_LOG_SPACE = 'alert-log'
const TRENDS_SPACE = 'alert-trends'
const SIGHTS_SPACE = 'alert-sights'

const PAGE = 200
/** 50 000 lines: a month of a system that is never well. */
const LOG_PAGES_MAX = 250
const SIGHTS_MAX = 500
const SIGHT_TTL_MS = 6 * DEFAULTS.alertStoreEveryMs
/** A note that is taken away by compare-and-set is one that ends at once. */
const GONE_TTL_MS = 1_000
/** Of a queue with the longest name and eleven samples: about 600 bytes. */
const TRENDS_PER_NOTE = 80
const TRENDS_TTL_MS = 2 * DEFAULTS.alertWindowMs

/** What is there under a key; without a state it was just taken away. */
export interface AlertEntry {
  readonly state: AlertState | null
  readonly version: number
}

/** What one supervisor sees. */
export interface Sight {
  readonly host: string
  readonly state: AlertState
}

/** What happened, for people. */
export interface AlertLogEntry extends Pick<
  Notice,
  'kind' | 'key' | 'severity' | 'text' | 'incident' | 'quiet' | 'note'
> {
  readonly atMs: number
  /** Of a notice that could not be delivered: which sink, and why. */
  readonly undelivered?: { readonly sink: string; readonly error: string }
}

export interface AlertNotes {
  states(): Promise<ReadonlyMap<string, AlertEntry>>
  state(key: string): Promise<AlertEntry | null>
  /** Null: somebody else has changed it since. */
  write(state: AlertState, version: number): Promise<number | null>
  take(state: AlertState, version: number): Promise<void>
  silences(): Promise<readonly Silence[]>
  /** For as long as it lasts. */
  addSilence(silence: Silence, lastsMs: number): Promise<void>
  removeSilence(id: string): Promise<boolean>
  /** The same notice twice is one line. */
  record(entry: AlertLogEntry): Promise<void>
  /** Newest first. */
  log(sinceMs: number, limit: number): Promise<readonly AlertLogEntry[]>
  sights(): Promise<readonly Sight[]>
  /** For a while: whoever sees it says so again. */
  show(sight: Sight): Promise<void>
  hide(sight: Sight): Promise<void>
  trends(connection: string): Promise<ReadonlyMap<string, Trend>>
  writeTrends(connection: string, trends: ReadonlyMap<string, Trend>): Promise<void>
}

export function createAlertNotes(notes: NoteStore): AlertNotes {
  async function all(space: string, max: number): Promise<readonly Note[]> {
    const found: Note[] = []
    let cursor: string | undefined
    while (found.length < max) {
      const page = await notes.list(space, PAGE, cursor)
      found.push(...page)
      cursor = page.at(-1)?.key
      if (page.length < PAGE) break
    }
    return found.slice(0, max)
  }
  const entryOf = ({ value, version }: Note): AlertEntry => {
    const state = parsed<AlertState>(value)
    if (!Array.isArray(state?.owed)) return { version, state: null }
    return { version, state: state.phase === 'recovered' && state.owed.length === 0 ? null : state }
  }
  return {
    async states() {
      return new Map((await all(ALERTS_SPACE, 2 * LIMITS.alertsMax)).map((note) => [note.key, entryOf(note)]))
    },
    async state(key) {
      const note = await notes.get(ALERTS_SPACE, key)
      return note === null ? null : entryOf(note)
    },
    write: (state, version) =>
      notes.put({ space: ALERTS_SPACE, key: state.key, value: JSON.stringify(state), expectVersion: version }),
    async take(state, version) {
      const value = JSON.stringify({ ...state, phase: 'recovered', owed: [] } satisfies AlertState)
      await notes.put({ space: ALERTS_SPACE, key: state.key, value, expectVersion: version, ttlMs: GONE_TTL_MS })
    },
    async silences() {
      const found = await all(SILENCES_SPACE, LIMITS.silencesMax)
      return found.map(({ value }) => parsed<Silence>(value)).filter((one) => one !== null)
    },
    async addSilence(silence, lastsMs) {
      const value = JSON.stringify(silence)
      await notes.put({ space: SILENCES_SPACE, key: silence.id, value, ttlMs: lastsMs })
    },
    removeSilence: (id) => notes.remove(SILENCES_SPACE, id),
    async record(entry) {
      const what = entry.undelivered === undefined ? entry.kind : `undelivered-${entry.undelivered.sink}`
      const key = shortKey(`${isoOf(entry.atMs)}:${what}:${entry.incident}`, LIMITS.keyCharsMax)
      const value = JSON.stringify(entry)
      await notes.put({ space: ALERT_LOG_SPACE, key, value, ttlMs: DEFAULTS.alertLogMs })
    },
    async log(sinceMs, limit) {
      let newest: readonly Note[] = []
      let cursor: string | undefined = isoOf(sinceMs)
      for (let pages = 0; pages < LOG_PAGES_MAX && cursor !== undefined; pages++) {
        const page: readonly Note[] = await notes.list(ALERT_LOG_SPACE, PAGE, cursor)
        newest = [...newest, ...page].slice(-limit)
        cursor = page.length < PAGE ? undefined : page.at(-1)?.key
      }
      const entries = newest.map(({ value }) => parsed<AlertLogEntry>(value)).filter((one) => one !== null)
      return entries.reverse()
    },
    async sights() {
      const found = await all(SIGHTS_SPACE, SIGHTS_MAX)
      return found.map(({ value }) => parsed<Sight>(value)).filter((one) => one !== null)
    },
    async show(sight) {
      await notes.put({ space: SIGHTS_SPACE, key: sightKey(sight), value: JSON.stringify(sight), ttlMs: SIGHT_TTL_MS })
    },
    async hide(sight) {
      await notes.remove(SIGHTS_SPACE, sightKey(sight))
    },
    async trends(connection) {
      const found = new Map<string, Trend>()
      for (let part = 0; part * TRENDS_PER_NOTE < LIMITS.alertQueuesMax; part++) {
        const note = await notes.get(TRENDS_SPACE, trendsKey(connection, part))
        if (note === null) break
        for (const [queue, trend] of parsed<readonly (readonly [string, Trend])[]>(note.value) ?? []) {
          found.set(queue, trend)
        }
      }
      return found
    },
    async writeTrends(connection, trends) {
      const entries = [...trends].sort(([a], [b]) => (a < b ? -1 : 1))
      for (let from = 0, part = 0; from < entries.length; from += TRENDS_PER_NOTE, part++) {
        const value = JSON.stringify(entries.slice(from, from + TRENDS_PER_NOTE))
        await notes.put({ space: TRENDS_SPACE, key: trendsKey(connection, part), value, ttlMs: TRENDS_TTL_MS })
      }
    },
  }
}

export function logEntryOf(notice: Notice): AlertLogEntry {
  const { kind, key, severity, text, incident, quiet, note, atMs } = notice
  return { kind, key, severity, text, incident, quiet, note, atMs }
}

const sightKey = ({ host, state }: Sight): string => shortKey(`${state.key}~${host}`, LIMITS.keyCharsMax)

const trendsKey = (connection: string, part: number): string => `${connection}:${part}`

function isoOf(ms: number): string {
  return new Date(Math.max(0, ms)).toISOString()
}

/** Null for what another version wrote and this one cannot read. */
function parsed<Value>(text: string): Value | null {
  try {
    return JSON.parse(text) as Value // written here
  } catch {
    return null
  }
}
