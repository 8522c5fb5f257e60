// Slots of handlers that do not end: given to others, and what such a handler answers at last comes too late. Pure
// functions over the books.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import type { Findings } from '../figures.ts'
import type { Robbed } from './delivery.ts'

export interface Overrun {
  /** Jobs whose first run goes on past their deadline; together they take every slot. */
  readonly overrunning: readonly string[]
  /** As many, each long enough to need a slot of its own. */
  readonly waiting: readonly string[]
  readonly deadlineMs: number
}

/** Until the handler was told to stop and has had its grace. */
const FREE_MAX_MS = 2_000
/** A deadline counts from a moment before the first line of its handler. */
const HAND_OVER_MS = 100

export function slotsFreed(books: Books, { overrunning, waiting, deadlineMs }: Overrun): Findings {
  const runs = runsById(books.runs)
  const startsMs = (ids: readonly string[]): readonly number[] =>
    ids.map((id) => runs.get(id)?.[0]?.startMs ?? Infinity)
  const freeMs = Math.max(...startsMs(waiting)) - Math.max(...startsMs(overrunning))
  const lateResults = overrunning.filter((id) => {
    const [first, next] = runs.get(id) ?? []
    return next !== undefined && (first?.endMs ?? 0) > next.startMs
  }).length
  const isFree = freeMs <= deadlineMs + FREE_MAX_MS
  const slots = Number.isFinite(freeMs) ? { slotsFreeSeconds: freeMs / 1000 } : {}
  return {
    figures: { ...slots, lateResults },
    broken: [
      ...(isFree ? [] : [`not every slot was free ${(deadlineMs + FREE_MAX_MS) / 1000} s later`]),
      ...(lateResults === 0 ? ['no result came late'] : []),
    ],
  }
}

/** Each lost its job when its deadline had passed. */
export function robbedByDeadline(books: Books, { overrunning, deadlineMs }: Overrun): readonly Robbed[] {
  const runs = runsById(books.runs)
  return overrunning.flatMap((id) => {
    const first = runs.get(id)?.[0]
    if (first === undefined) return []
    const atMs = first.startMs + deadlineMs
    return [{ pid: first.pid, fromMs: atMs, toMs: atMs, heldUntilMs: atMs - HAND_OVER_MS, ids: new Set([id]) }]
  })
}
