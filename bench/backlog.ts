// Jobs that wait before a measurement begins.
import type { Stage } from './scenario.ts'
import { payloads } from './system.ts'

/** The most that one bulk call takes. */
const BULK_MAX = 10_000

/**
 * Adds jobs while nobody works, and makes sure that the store will tell when they are done. Who measures analyses the
 * tables then, as autovacuum does within a minute of use: without, Graphile Worker pays twice the processor time of the
 * server for a job, which is true of a database that is seconds old and of no other. For the same reason a rewrite of the
 * log of Redis, set off by so many jobs at once, is over when this resolves.
 */
export async function fill({ system, redis }: Stage, jobs: number): Promise<void> {
  const before = await system.unfinished()
  for (let first = 0; first < jobs; first += BULK_MAX) {
    await system.enqueueMany(payloads(first, Math.min(BULK_MAX, jobs - first)))
  }
  const added = (await system.unfinished()) - before
  if (added !== jobs) throw new Error(`the store says that ${added} jobs are new, not the ${jobs} that were added`)
  await redis?.settle()
}
