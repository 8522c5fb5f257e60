// How fast work went on: rates between two moments, and how long a fault was felt. Pure functions over the books.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import type { Robbed } from './delivery.ts'

export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** Handlers that came to their end, per second. */
export function endsPerSecond({ runs }: Books, { fromMs, toMs }: Span): number {
  const ended = runs.filter(({ endMs = 0 }) => endMs >= fromMs && endMs < toMs).length
  return (ended * 1000) / Math.max(toMs - fromMs, 1)
}

/** From the moment the store was back to the first start of a job that was asked for after it. Null: none came. */
export function firstStartMs({ asked, runs }: Books, backMs: number): number | null {
  const fresh = runs.filter(({ id }) => (asked.get(id)?.atMs ?? 0) >= backMs)
  return fresh.length === 0 ? null : Math.min(...fresh.map(({ startMs }) => startMs)) - backMs
}

/** From a robbery to the last start of a job whose run it interrupted. Null: nothing was interrupted. */
export function lastRestartMs({ runs }: Books, robbed: readonly Robbed[]): number | null {
  const waits = [...runsById(runs).values()].flatMap((of) =>
    of.flatMap((run, index) => {
      const thief = robbed.find(
        ({ pid, atMs }) => pid === run.pid && run.startMs <= atMs && (run.endMs ?? Infinity) > atMs,
      )
      const next = of[index + 1]
      return thief === undefined || next === undefined ? [] : [next.startMs - thief.atMs]
    }),
  )
  return waits.length === 0 ? null : Math.max(...waits)
}

const STEP_MS = 250
/** A rate over less is luck. */
const SPAN_MIN_MS = 1_000

/** How long after `fromMs` the offered rate was reached for the rest of the load, acknowledged and run. Null: never. */
export function steadyAfterMs(books: Books, span: Span, ratePerS: number): number | null {
  for (let atMs = span.fromMs; atMs + SPAN_MIN_MS <= span.toMs; atMs += STEP_MS) {
    const rest = { fromMs: atMs, toMs: span.toMs }
    const taken = [...books.acked.values()].filter((ackedMs) => ackedMs >= atMs && ackedMs < span.toMs).length
    const takenPerS = (taken * 1000) / (span.toMs - atMs)
    if (Math.min(takenPerS, endsPerSecond(books, rest)) >= ratePerS) return atMs - span.fromMs
  }
  return null
}
