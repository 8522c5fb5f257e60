// Firing a tick: by the scheduler that is right about the next run, and by one that is not.
import fc from 'fast-check'
import { expect } from 'vitest'
import type { NewJob } from '../../src/core/job.ts'
import { insertJobs } from './insert.ts'
import { SCHEDULE, command, newJob } from './program.ts'
import type { Command, Program, Store } from './program.ts'
import { findJob, hasEnded } from './state.ts'

export const fireCommand: fc.Arbitrary<Command> = fc
  .record({ right: fc.boolean(), unlessLive: fc.boolean(), jobs: fc.nat({ max: 2 }) })
  .map((tick) => command(`fire(${JSON.stringify(tick)})`, (program, store) => fire(program, store, tick)))

async function fire(
  program: Program,
  { backend }: Store,
  tick: { readonly right: boolean; readonly unlessLive: boolean; readonly jobs: number },
): Promise<void> {
  const { schedule, model } = program
  const expectedRunMs = tick.right ? schedule.nextRunMs : schedule.nextRunMs - 1
  const nextRunMs = schedule.nextRunMs + 1_000
  const jobs: readonly NewJob[] = Array.from({ length: tick.jobs }, () =>
    newJob(program, { schedule: { name: SCHEDULE, tickMs: expectedRunMs } }),
  )
  const reply = await backend.schedules.fire({
    schedule: SCHEDULE,
    expectedRunMs,
    nextRunMs,
    jobs,
    unlessLive: tick.unlessLive,
  })
  const last = schedule.lastJob === null ? undefined : findJob(model, schedule.lastJob)
  const overlaps = tick.unlessLive && last !== undefined && !hasEnded(last)
  expect(reply).toBe(!tick.right ? 'stale' : overlaps || jobs.length === 0 ? 'skipped' : 'fired')
  if (reply === 'stale') return
  schedule.nextRunMs = nextRunMs
  if (reply === 'skipped') return
  schedule.lastJob = jobs.at(-1)!.id
  insertJobs(model, jobs)
}
