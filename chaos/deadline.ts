// How long a cell may take at the most. Nothing in it should ever wait for ever, but what breaks the harness is what nobody
// thought of, and a run takes three quarters of an hour.
import { DRAIN_MAX_MS, wait } from './scenario.ts'
import type { Times } from './scenario.ts'

/** Several times what the longest may take by plan. */
const TIMES_THE_PLAN = 3
const PHASES_MAX = 6
const TTLS_MAX = 4
/** Due at once: to be enqueued, and worked off. */
const PER_DUE_JOB_MS = 1.5
/** Servers, processes, tokens that have to flow again. */
const AROUND_MS = 90_000

export function cellMaxMs({ phaseMs, ttlMs, blockedMs, dueJobs }: Times): number {
  const faultMs = PHASES_MAX * phaseMs + TTLS_MAX * ttlMs + blockedMs + dueJobs * PER_DUE_JOB_MS
  return TIMES_THE_PLAN * (faultMs + DRAIN_MAX_MS.default + AROUND_MS)
}

/** A cell that did not end in time; whatever it left goes on. */
export class CellHung extends Error {}

/** Rejects with CellHung when the work is not done by then. */
export async function within<Value>(limitMs: number, work: Promise<Value>): Promise<Value> {
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      isOver = true
      reject(new CellHung(`it hung: no end after ${Math.round(limitMs / 1000)} s`))
    }, limitMs)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
    // Nobody hears of it any more.
    if (isOver) work.catch(() => undefined)
  }
}

const GIVE_UP_MS = 20_000

/** What does not end by then is left to the end of the run. */
export async function atMostAWhile(work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => undefined), wait(GIVE_UP_MS)])
}
