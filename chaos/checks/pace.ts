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

export interface Restarts {
  /** Runs that were under way when their process was robbed. */
  readonly interrupted: number
  /** From a robbery to the last start of a job that it took away. Null: none started again. */
  readonly lastMs: number | null
  /** Jobs that were interrupted and have not come to their end since. */
  readonly never: readonly string[]
}

export function restartsOf({ runs }: Books, robbed: readonly Robbed[]): Restarts {
  const waits: number[] = []
  const never: string[] = []
  let interrupted = 0
  for (const [id, of] of runsById(runs)) {
    for (const [index, run] of of.entries()) {
      const { startMs, endMs = Infinity } = run
      const robbery = robbed.find(
        ({ pid, fromMs, toMs, ids }) => pid === run.pid && startMs <= toMs && endMs > fromMs && (ids?.has(id) ?? true),
      )
      if (robbery === undefined) continue
      if (startMs <= robbery.fromMs) interrupted += 1
      const next = of[index + 1]
      if (next !== undefined) waits.push(next.startMs - robbery.fromMs)
      else if (run.endMs === undefined) never.push(id)
    }
  }
  return { interrupted, lastMs: waits.length === 0 ? null : Math.max(...waits), never }
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
