// Jobs that are for later: none begins before its time, and where that is promised none long after it. Pure functions
// over the books.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import type { Findings } from '../figures.ts'

/** Clocks are read to the millisecond, by several programs. */
const EARLY_MS = 2

export function timeliness(books: Books, lateMaxMs: number): Findings {
  const runs = runsById(books.runs)
  let [early, late, latestMs] = [0, 0, 0]
  for (const [id, dueMs] of books.due) {
    const first = runs.get(id)?.[0]
    // One that never began is lost or stuck.
    if (first === undefined) continue
    const afterMs = first.startMs - dueMs
    if (afterMs < -EARLY_MS) early += 1
    if (afterMs > lateMaxMs) late += 1
    latestMs = Math.max(latestMs, afterMs)
  }
  return {
    figures: { early, late, latestSeconds: latestMs / 1000 },
    broken: [
      ...(books.due.size === 0 ? ['no job was for later'] : []),
      ...(early > 0 ? [`${early} began before their time`] : []),
      ...(late > 0 ? [`${late} began more than ${lateMaxMs / 1000} s after their time`] : []),
    ],
  }
}
