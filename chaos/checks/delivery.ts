// What became of the jobs: lost, unexpected, run again, run by two at once, finished by the wrong run. Pure functions
// over the books and what the system itself has written down.
import { runsById } from '../books.ts'
import type { Books, Run } from '../books.ts'
import type { Census, Recorded } from '../system.ts'

/** A process that was robbed of its jobs at some moment: it died, or was away for longer than its ttl. */
export interface Robbed {
  readonly pid: number
  readonly atMs: number
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
export function stillThere(missing: number, { waiting, running, failed }: Census): number {
  return Math.min(missing, waiting + running + failed)
}

/** Run or recorded, and never asked for. */
export function unexpected(books: Books, recorded: readonly Recorded[] = []): readonly string[] {
  const seen = new Set([...books.runs, ...recorded].map(({ id }) => id))
  return [...seen].filter((id) => !books.asked.has(id))
}

export interface Again {
  /** Started again because the process that had them was robbed. */
  readonly allowed: readonly string[]
  /** Started again although the process that had them was alive and in contact. */
  readonly forbidden: readonly string[]
}

export function startedAgain(books: Books, robbed: readonly Robbed[]): Again {
  const again = [...runsById(books.runs)].filter(([, runs]) => runs.length > 1)
  const mayRepeat = (run: Run): boolean => robbed.some((one) => hadAt(run, one))
  const isAllowed = (runs: readonly Run[]): boolean => runs.slice(0, -1).every(mayRepeat)
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
      return next !== undefined && next.startMs < (run.endMs ?? Infinity) && !robbed.some((one) => hadAt(run, one))
    })
      ? [id]
      : [],
  )
}

/** Completed without exactly one success in its trail, or started more often than its trail has rows for. */
export function stale(books: Books, recorded: readonly Recorded[]): readonly string[] {
  const runs = runsById(books.runs)
  return recorded.flatMap(({ id, status, rows, successes }) => {
    const isTwice = status === 'completed' && successes !== 1
    return isTwice || (runs.get(id)?.length ?? 0) > rows ? [id] : []
  })
}

/** It began before the robbery. Where it ended by then, its report may still have been on the way. */
function hadAt(run: Run, { pid, atMs }: Robbed): boolean {
  return run.pid === pid && run.startMs <= atMs
}
