// How much waits and runs in each queue, over time, as values that add up: one look of a minute, the looks of an hour, those
// of a point in a chart. What is in none of the notes was empty. Pure.
import type { JsonText } from './json.ts'
import { LIMITS } from './limits.ts'

export interface Depths {
  /** How often somebody looked; sums are divided by it. */
  readonly looks: number
  readonly queues: readonly QueueDepth[]
}

export interface QueueDepth {
  readonly queue: string
  readonly readySum: number
  readonly readyMax: number
  readonly runningSum: number
  readonly oldestReadyMaxMs: number
}

export interface SeenDepth {
  readonly queue: string
  readonly ready: number
  readonly running: number
  readonly oldestReadyMs: number
}

/** One look. Queues in which nothing waits or runs are left out. */
export function depthsOf(seen: readonly SeenDepth[]): Depths {
  const queues = seen.flatMap(({ queue, ready, running, oldestReadyMs }): readonly QueueDepth[] =>
    ready === 0 && running === 0
      ? []
      : [{ queue, readySum: ready, readyMax: ready, runningSum: running, oldestReadyMaxMs: Math.round(oldestReadyMs) }],
  )
  return { looks: 1, queues }
}

export function sumDepths(list: readonly Depths[]): Depths {
  const sums = new Map<string, QueueDepth>()
  for (const one of list.flatMap(({ queues }) => queues)) {
    const before = sums.get(one.queue)
    sums.set(one.queue, before === undefined ? one : added(before, one))
  }
  const queues = [...sums.values()].sort((one, other) => (one.queue < other.queue ? -1 : 1))
  return { looks: list.reduce((sum, { looks }) => sum + looks, 0), queues }
}

function added(one: QueueDepth, other: QueueDepth): QueueDepth {
  return {
    queue: one.queue,
    readySum: one.readySum + other.readySum,
    readyMax: Math.max(one.readyMax, other.readyMax),
    runningSum: one.runningSum + other.runningSum,
    oldestReadyMaxMs: Math.max(one.oldestReadyMaxMs, other.oldestReadyMaxMs),
  }
}

const CHARS_MAX = LIMITS.noteBytesMax - 1_024

/** At most as long as a note may be: the deepest queues. Names are ASCII, so characters are bytes. */
export function encodeDepths({ looks, queues }: Depths, charsMax: number = CHARS_MAX): JsonText {
  const deepest = [...queues].sort((one, other) => other.readyMax - one.readyMax || other.runningSum - one.runningSum)
  for (let most: number = LIMITS.depthQueuesMax; ; most = Math.floor(most / 2)) {
    const rows = deepest.slice(0, most).map((one) => {
      return [one.queue, one.readySum, one.readyMax, one.runningSum, one.oldestReadyMaxMs]
    })
    const text = JSON.stringify({ looks, queues: rows })
    if (text.length <= charsMax || most === 0) return text
  }
}

/** Null: somebody else wrote it. Rows that are none are left out. */
export function decodeDepths(text: JsonText): Depths | null {
  try {
    const { looks, queues } = JSON.parse(text) as { readonly looks?: unknown; readonly queues?: unknown } // checked below
    if (!isCount(looks) || looks === 0 || !Array.isArray(queues)) return null
    return { looks, queues: queues.flatMap((row: unknown) => rowIn(row) ?? []) }
  } catch {
    return null
  }
}

function rowIn(row: unknown): QueueDepth | undefined {
  if (!Array.isArray(row)) return undefined
  const [queue, readySum, readyMax, runningSum, oldestReadyMaxMs] = row as readonly unknown[]
  if (typeof queue !== 'string' || !isCount(readySum) || !isCount(readyMax)) return undefined
  if (!isCount(runningSum) || !isCount(oldestReadyMaxMs)) return undefined
  return { queue, readySum, readyMax, runningSum, oldestReadyMaxMs }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
