// Jobs that wait before a measurement begins.
import { nowMs } from './crew.ts'
import type { Stage } from './scenario.ts'
import type { Payload } from './system.ts'

/** The most that one bulk call takes, and the most bytes of bodies. */
const BULK_MAX = 10_000
const BULK_BYTES_MAX = 8 * 2 ** 20

/**
 * Adds jobs while nobody works, and makes sure that the store will tell when they are done. Who measures analyses the
 * tables then, as autovacuum does within a minute of use: without, Graphile Worker pays twice the processor time of the
 * server for a job, which is true of a database that is seconds old and of no other.
 */
export async function fill(stage: Stage, jobs: number): Promise<void> {
  await fillWithin(stage, jobs, Infinity)
}

/** The same, but begins no further call when the time is over. Answers how many were added. */
export async function fillWithin(stage: Stage, jobs: number, withinMs: number): Promise<number> {
  const { system } = stage
  const before = await system.unfinished()
  const bulk = Math.min(BULK_MAX, Math.floor(BULK_BYTES_MAX / stage.payload(0).body.length))
  const untilMs = nowMs() + withinMs
  let sent = 0
  while (sent < jobs && nowMs() < untilMs) {
    const count = Math.min(bulk, jobs - sent)
    await system.enqueueMany(payloadsOf(stage, sent, count))
    sent += count
  }
  const added = (await system.unfinished()) - before
  if (added !== sent) throw new Error(`the store says that ${added} jobs are new, not the ${sent} that were added`)
  return added
}

export function payloadsOf({ payload }: Stage, first: number, count: number): readonly Payload[] {
  return Array.from({ length: count }, (_, index) => payload(first + index))
}
