// The end of `--once`: how the round ended, and every way in which that differs from what the workload implies.
import type { JobStatus } from '../../src/index.ts'
import { albumReady, collectMetrics } from './jobs.ts'
import { deadRows } from './watch.ts'
import type { DeadRow, QueueRow, Watch } from './watch.ts'
import { EXPECTED, SCHEDULE } from './workload.ts'
import type { DemoMill, Round } from './workload.ts'

export interface RoundOutcome {
  readonly queues: readonly QueueRow[]
  readonly retries: number
  readonly duplicates: number
  readonly deadLetters: readonly DeadRow[]
  readonly batch: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly callbackRuns: number
  /** Moments at which the schedule fired, and the jobs that came of it. */
  readonly ticks: number
  readonly tickJobs: number
}

export async function readOutcome(mill: DemoMill, round: Round, { totals }: Watch, queues: readonly QueueRow[]) {
  const callbacks = await mill.jobs.list({ name: albumReady.name, status: 'completed' })
  const ticked = await mill.jobs.list({ schedule: SCHEDULE, status: 'completed' }, { limit: 200 })
  const outcome: RoundOutcome = {
    queues,
    retries: totals.retries,
    duplicates: round.duplicates,
    deadLetters: await deadRows(mill),
    batch: await round.batch.progress(),
    callbackRuns: callbacks.items.length,
    ticks: new Set(ticked.items.map(({ schedule }) => schedule?.tick.getTime())).size,
    tickJobs: ticked.items.filter(({ name }) => name === collectMetrics.name).length,
  }
  return outcome
}

/** Empty when everything is as it must be. */
export function differences(outcome: RoundOutcome): readonly string[] {
  const found: string[] = []
  const check = (what: string, is: number, mustBe: number): void => {
    if (is !== mustBe) found.push(`${what}: ${is}, must be ${mustBe}`)
  }
  for (const { name, counts } of outcome.queues) {
    const ends = EXPECTED.queues[name] ?? { completed: 0 }
    const extra = name === collectMetrics.queue ? outcome.tickJobs : 0
    const must: Partial<Record<JobStatus, number>> = { ...ends, completed: ends.completed + extra }
    for (const [status, count] of Object.entries(counts))
      check(`${name} ${status}`, count, must[status as JobStatus] ?? 0)
  }
  for (const queue of Object.keys(EXPECTED.queues)) {
    if (!outcome.queues.some(({ name }) => name === queue)) found.push(`queue ${queue} is missing`)
  }
  const dead = outcome.deadLetters.map(({ name, error }) => `${name}: ${error}`).toSorted()
  if (dead.join('; ') !== EXPECTED.deadLetters.join('; ')) found.push(`dead letters: ${dead.join('; ') || 'none'}`)
  const { total, completed, failed } = outcome.batch
  check('retries', outcome.retries, EXPECTED.retries)
  check('duplicates', outcome.duplicates, EXPECTED.duplicates)
  check('jobs of the batch that have ended', completed + failed, total)
  check('runs of the batch callback', outcome.callbackRuns, 1)
  check('jobs of the schedule', outcome.tickJobs, outcome.ticks)
  if (outcome.ticks < 1) found.push('the schedule never ticked')
  return found
}

export function summaryLines(outcome: RoundOutcome): readonly string[] {
  const { batch, retries, duplicates, deadLetters, callbackRuns, ticks, tickJobs } = outcome
  return [
    `retries ${retries}, duplicates met ${duplicates}`,
    `batch: ${batch.completed} completed, ${batch.failed} failed of ${batch.total}; its callback ran ${callbackRuns === 1 ? 'once' : `${callbackRuns} times`}`,
    `schedule: ${ticks} ticks, ${tickJobs} jobs`,
    `dead letters ${deadLetters.length}`,
    ...deadLetters.map(
      ({ name, error, attempts }) => `  ${name}: ${error} (${attempts} ${attempts === 1 ? 'attempt' : 'attempts'})`,
    ),
  ]
}
