// Workers that take nothing any more: alive, and never back after the fault. The others do their work, so that neither the
// drain nor the rate shows it. Pure functions over the books.
import type { Books } from '../books.ts'
import type { Span } from './pace.ts'

/**
 * A connection and a new life, each after a pause between two tries of up to 2 s: up to 3.3 s were seen after an outage of Redis
 * or a full disk, else less than 1.5.
 */
export const TAKES_MAX_MS = 10_000

/** From the end of the fault to the first start in each of these processes. Infinity: it has taken nothing. */
export function takesAfterMs({ runs }: Books, pids: readonly number[], backMs: number): readonly number[] {
  return pids.map((pid) => {
    const starts = runs.flatMap((run) => (run.pid === pid && run.startMs >= backMs ? [run.startMs - backMs] : []))
    return starts.reduce((first, ms) => Math.min(first, ms), Infinity)
  })
}

/** Said of those that took nothing for so long, if there was something to take for so long. */
export function idle(takesMs: readonly number[], { fromMs, toMs }: Span): readonly string[] {
  const count = takesMs.filter((ms) => ms > TAKES_MAX_MS).length
  if (count === 0 || toMs - fromMs < TAKES_MAX_MS) return []
  return [`${count} of ${takesMs.length} workers took nothing for ${TAKES_MAX_MS / 1000} s after the fault`]
}
