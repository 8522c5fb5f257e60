// What became of the jobs: lost, unexpected, run again, run by two at once, finished by the wrong run. Pure functions
// over the books and what the system itself has written down.
import { resultOf, runsById } from '../books.ts'
import type { Books, Run } from '../books.ts'
import type { Census, Recorded } from '../system.ts'

/** A process that was robbed of its jobs: it died, was away for longer than its ttl, or its store forgot what it had. */
export interface Robbed {
  readonly pid: number
  /** What it had then, and what it began until then, may run again. The same moment where it died. */
  readonly fromMs: number
  readonly toMs: number
  /** Until then its leases surely held: nobody may have begun one of its jobs sooner. Absent: there is no telling. */
  readonly heldUntilMs?: number
  /** Of these jobs alone. */
  readonly ids?: ReadonlySet<string>
}

/** Acknowledged, and by the record of the system not completed. */
export function lostByRecord(books: Books, recorded: readonly Recorded[]): readonly string[] {
  const completed = new Set(recorded.flatMap(({ id, status }) => (status === 'completed' ? [id] : [])))
  return [...books.acked.keys()].filter((id) => !completed.has(id))
}

/** Acknowledged, and no handler came to its end. */
export function unfinished(books: Books): readonly string[] {
  const ended = new Set(books.runs.flatMap(({ id, endMs }) => (endMs === undefined ? [] : [id])))
  return [...books.acked.keys()].filter((id) => !ended.has(id))
}

/** Of the unfinished, those that the system still has: it waits for a time-out of its own, or has given up on them. */
export function stillThere(missing: readonly string[], recorded: readonly Recorded[]): number {
  const there = new Set(recorded.flatMap(({ id, status }) => (status === 'completed' ? [] : [id])))
  return missing.filter((id) => there.has(id)).length
}

/** The same of a system that keeps no record: by number, without those that had to fail. */
export function stillCounted(missing: number, { waiting, running, failed }: Census, expectedFailed: number): number {
  return Math.min(missing, waiting + running + Math.max(failed - expectedFailed, 0))
}

/** Asked for until then: a store that was back by then has nothing to forget of later ones. */
export function askedUntil({ asked }: Books, untilMs: number): ReadonlySet<string> {
  return new Set([...asked].flatMap(([id, { atMs }]) => (atMs <= untilMs ? [id] : [])))
}

export interface Keeping {
  /** When the store was back. */
  readonly backMs: number
  /** What it still had then, as far as anybody could ask. */
  readonly kept?: ReadonlySet<string>
  /** Whatever was acknowledged before. */
  readonly keptBeforeMs?: number
}

/** Lost although the store had them after the fault, or was asked for them only then: no contract gives these up. */
export function lostForNothing(
  lost: readonly string[],
  { asked, acked }: Books,
  { backMs, kept, keptBeforeMs = -Infinity }: Keeping,
): readonly string[] {
  return lost.filter((id) => kept?.has(id) || acked.get(id)! < keptBeforeMs || (asked.get(id)?.atMs ?? 0) > backMs)
}

/** Run or recorded, and never asked for. */
export function unexpected(books: Books, recorded: readonly Recorded[] = []): readonly string[] {
  const seen = new Set([...books.runs, ...recorded].map(({ id }) => id))
  return [...seen].filter((id) => !books.asked.has(id))
}

export interface Again {
  /** Started again because the process that had them was robbed. */
  readonly allowed: readonly string[]
  /** Started again although the process that had them was alive and in contact, or its leases still held. */
  readonly forbidden: readonly string[]
}

export function startedAgain(books: Books, robbed: readonly Robbed[]): Again {
  const again = [...runsById(books.runs)].filter(([, runs]) => runs.length > 1)
  const isAllowed = (runs: readonly Run[]): boolean =>
    runs.slice(1).every((next, index) => mayRepeat(runs[index]!, next, robbed))
  return {
    allowed: again.flatMap(([id, runs]) => (isAllowed(runs) ? [id] : [])),
    forbidden: again.flatMap(([id, runs]) => (isAllowed(runs) ? [] : [id])),
  }
}

/** Two runs of one job at the same time, the earlier of which still owned it. */
export function overlapping(books: Books, robbed: readonly Robbed[]): readonly string[] {
  return [...runsById(books.runs)].flatMap(([id, runs]) =>
    runs.some((run, index) => {
      const next = runs[index + 1]
      return next !== undefined && next.startMs < (run.endMs ?? Infinity) && !mayRepeat(run, next, robbed)
    })
      ? [id]
      : [],
  )
}

/**
 * Completed without exactly one success in its trail, with the result of a run that another had overtaken or that nobody
 * knows, or started more often than its trail has rows for. A store that was allowed to forget may have forgotten rows.
 */
export function stale(books: Books, recorded: readonly Recorded[], mayForget = false): readonly string[] {
  const byId = runsById(books.runs)
  return recorded.flatMap(({ id, status, rows, successes, result }) => {
    const runs = byId.get(id) ?? []
    const isWrong = status === 'completed' && (successes !== 1 || !isOfOwner(runs, result))
    return isWrong || (!mayForget && runs.length > rows) ? [id] : []
  })
}

/** Whether this is the result of a run before whose end no other had started. */
function isOfOwner(runs: readonly Run[], result: string | null): boolean {
  const index = runs.findLastIndex((run) => resultOf(run) === result)
  const next = runs[index + 1]
  return index >= 0 && (next === undefined || next.startMs >= (runs[index]!.endMs ?? -Infinity))
}

/** A report may be on the way for so long after the end of a run. */
const REPORT_MS = 1_000

/**
 * Whether a run may be followed by this one: its process was robbed while it ran, or while its report was on the way, and no
 * longer held the job.
 */
export function mayRepeat(run: Run, next: Run, robbed: readonly Robbed[]): boolean {
  return robbed.some(
    ({ pid, fromMs, toMs, heldUntilMs = -Infinity, ids }) =>
      run.pid === pid &&
      run.startMs <= toMs &&
      next.startMs >= heldUntilMs &&
      (run.endMs ?? Infinity) >= fromMs - REPORT_MS &&
      (ids?.has(run.id) ?? true),
  )
}
