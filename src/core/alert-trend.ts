// How the numbers of a queue move: whether anything is done, and what ended in the last ten minutes. Counts of stores
// go down when retention or a replay takes jobs away, so only steps upwards count.
import type { RecentEnds } from './alert-facts.ts'
import { DEFAULTS } from './limits.ts'

/** Small and plain: it is kept in the store, so that a new leader goes on with it. */
export interface Trend {
  readonly ready: number
  readonly ended: number
  readonly oldestReadyAtMs: number | null
  /** About one a minute, oldest first: when, completed, failed. */
  readonly samples: readonly TrendSample[]
}

export type TrendSample = readonly [atMs: number, completed: number, failed: number]

export interface TrendCounts {
  readonly ready: number
  readonly running: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly oldestReadyAtMs: number | null
}

export interface TrendReading {
  readonly trend: Trend
  readonly isStalled: boolean | null
  readonly recent: RecentEnds
  /** A sample was added: worth writing down. */
  readonly isNews: boolean
}

const SAMPLE_EVERY_MS = 60_000
const WINDOW_MS = DEFAULTS.alertWindowMs

export function followTrend(before: Trend | undefined, counts: TrendCounts, nowMs: number): TrendReading {
  const { ready, completed, failed, cancelled, oldestReadyAtMs } = counts
  const ended = completed + failed + cancelled
  const known = samplesUntil(before?.samples ?? [], nowMs)
  const last = known.at(-1)
  const isNews = last === undefined || nowMs - last[0] >= SAMPLE_EVERY_MS
  const sample: TrendSample = [nowMs, completed, failed]
  const samples = isNews ? [...known, sample] : known
  return {
    trend: { ready, ended, oldestReadyAtMs, samples },
    isStalled: before === undefined ? null : isStalled(before, counts, ended),
    recent: { completed: growth([...known, sample], 1), failed: growth([...known, sample], 2) },
    isNews,
  }
}

/** Those of the window. A clock that was set back leaves some in the future: they are worthless. */
function samplesUntil(samples: readonly TrendSample[], nowMs: number): readonly TrendSample[] {
  const past = samples.filter(([atMs]) => atMs <= nowMs)
  const from = past.findIndex(([atMs]) => atMs >= nowMs - WINDOW_MS)
  return from === -1 ? [] : past.slice(from)
}

function isStalled(before: Trend, { ready, running, oldestReadyAtMs }: TrendCounts, ended: number): boolean {
  if (ready === 0 || running > 0) return false
  const wasTaken = ready < before.ready || (oldestReadyAtMs ?? 0) > (before.oldestReadyAtMs ?? Infinity)
  return !wasTaken && ended <= before.ended
}

function growth(samples: readonly TrendSample[], at: 1 | 2): number {
  let sum = 0
  for (let index = 1; index < samples.length; index++) {
    sum += Math.max(0, (samples[index]?.[at] ?? 0) - (samples[index - 1]?.[at] ?? 0))
  }
  return sum
}
