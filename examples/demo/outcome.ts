// The end of `--once`: waits for it, reads how the round ended, and finds every way in which that differs from what
// the workload implies. Only the jobs of this round count; the store may hold those of other runs.
import { setTimeout as sleep } from 'node:timers/promises'
import { JOB_STATUSES } from '../../src/index.ts'
import type { Job, JobStatus } from '../../src/index.ts'
import { albumReady, collectMetrics } from './jobs.ts'
import { deadLine } from './plain.ts'
import { deadRow } from './watch.ts'
import type { DeadRow, QueueRow } from './watch.ts'
import { EXPECTED, LIMITS, SCHEDULE } from './workload.ts'
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

const UNFINISHED = ['scheduled', 'queued', 'blocked', 'running'] as const
const POLL_MS = 100
/** More than a round has; pages are newest first. */
const PAGE = { limit: 200 } as const
/** A round takes five seconds; a busy machine and jobs of earlier runs make it longer. */
const ROUND_MAX_MS = 18_000
/** So long jobs of other runs are waited for as well. */
const OTHERS_MAX_MS = 15_000

export async function untilEnded(mill: DemoMill, round: Round, signal: AbortSignal): Promise<void> {
  const startMs = performance.now()
  while (!signal.aborted && performance.now() - startMs < ROUND_MAX_MS) {
    const { items } = await mill.jobs.list({ status: UNFINISHED }, PAGE)
    const left = items.filter(({ schedule }) => schedule === null)
    if (left.length === 0) return
    if (performance.now() - startMs > OTHERS_MAX_MS && !left.some((job) => isOf(round, job))) return
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}

export async function readOutcome(mill: DemoMill, round: Round): Promise<RoundOutcome> {
  const tagged = await mill.jobs.list({ tag: round.tag }, PAGE)
  const since = { enqueuedFrom: round.startedAt, status: 'completed' } as const
  const called = await mill.jobs.list({ ...since, name: albumReady.name }, PAGE)
  const fired = await mill.jobs.list({ ...since, schedule: SCHEDULE }, PAGE)
  const callbacks = called.items.filter((job) => isOf(round, job))
  const ticked = fired.items.filter(({ schedule }) => schedule !== null && schedule.tick >= round.startedAt)
  return {
    queues: rowsOf([...tagged.items, ...callbacks, ...ticked]),
    retries: tagged.items.reduce((sum, { attemptCount }) => sum + Math.max(0, attemptCount - 1), 0),
    duplicates: round.duplicates,
    deadLetters: tagged.items.filter(({ status }) => status === 'failed').map(deadRow),
    batch: await round.batch.progress(),
    callbackRuns: callbacks.length,
    ticks: new Set(ticked.map(({ schedule }) => schedule?.tick.getTime())).size,
    tickJobs: ticked.length,
  }
}

/** Callbacks of a batch have no tags of their own; they carry its id. */
function isOf(round: Round, { tags, meta }: Job): boolean {
  const batch = typeof meta === 'object' && meta !== null && 'batch' in meta ? meta['batch'] : null
  return tags.includes(round.tag) || batch === round.batch.id
}

function rowsOf(jobs: readonly Job[]): readonly QueueRow[] {
  const queues = new Set([...Object.keys(EXPECTED.queues), ...jobs.map(({ queue }) => queue)])
  return [...queues].map((name) => {
    const own = jobs.filter(({ queue }) => queue === name)
    const count = (status: JobStatus): number => own.filter((job) => job.status === status).length
    const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, count(status)]))
    return { name, counts: counts as QueueRow['counts'], limit: LIMITS[name] ?? '' } // one entry for each status
  })
}

/** The time was over before the round was: its counts are wrong, but nothing else is. */
export function isCutShort({ queues }: RoundOutcome): boolean {
  return queues.some(({ counts }) => UNFINISHED.some((status) => counts[status] > 0))
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
    ...deadLetters.map(deadLine),
  ]
}
