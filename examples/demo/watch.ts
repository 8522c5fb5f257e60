// Looks at a running Millrace through its public API: events of this process for what just happened, queries
// for how things stand. Screen and plain lines are made from the snapshots and happenings of this file.
import type { AttemptError, Batch, BatchProgress, Job, JobStatus } from '../../src/index.ts'
import { LIMITS, SCHEDULE } from './workload.ts'
import type { DemoMill } from './workload.ts'

export interface Snapshot {
  /** Where the jobs are kept, in words. */
  readonly store: string
  readonly elapsedMs: number
  readonly queues: readonly QueueRow[]
  /** Completed jobs of the last seconds, oldest first; the last one is not over yet. */
  readonly perSecond: readonly number[]
  readonly retries: number
  readonly running: readonly RunningRow[]
  readonly batch: { readonly name: string; readonly progress: BatchProgress } | null
  readonly schedule: { readonly name: string; readonly nextInMs: number | null; readonly ticks: number } | null
  readonly deadLetters: readonly DeadRow[]
  /** Newest last. */
  readonly happenings: readonly Happening[]
}

export interface QueueRow {
  readonly name: string
  readonly counts: Readonly<Record<JobStatus, number>>
  readonly limit: string
}

export interface RunningRow {
  readonly name: string
  readonly attempt: number
  readonly maxAttempts: number
  /** 0-100; null: it reports none. */
  readonly percent: number | null
  readonly ranMs: number
}

export interface DeadRow {
  readonly name: string
  readonly error: string
  readonly attempts: number
}

export interface Happening {
  readonly atMs: number
  readonly kind: 'note' | 'tick' | 'done' | 'retried' | 'failed'
  readonly text: string
}

export interface Watch {
  /** Counts since the start, which retention does not take back. */
  readonly totals: { readonly retries: number; readonly ticks: number }
  note(text: string): void
  /** The batch to show from now on. */
  follow(batch: Pick<Batch, 'id'>): void
  snapshot(): Promise<Snapshot>
  elapsedMs(): number
}

const SECONDS_SHOWN = 20
const RUNNING_SHOWN = 20
const HAPPENINGS_KEPT = 30
const DEAD_SHOWN = 3

/** `onHappening` is told of everything notable as it happens. */
export function watch(
  mill: DemoMill,
  store: string,
  onHappening: (happening: Happening) => void = () => undefined,
): Watch {
  const startedMs = performance.now()
  const elapsedMs = (): number => performance.now() - startedMs
  const perSecond = new Map<number, number>()
  const happenings: Happening[] = []
  const totals = { retries: 0, ticks: 0 }
  let batch: Pick<Batch, 'id'> | null = null

  function happened(kind: Happening['kind'], text: string): void {
    const happening = { kind, text, atMs: elapsedMs() }
    happenings.push(happening)
    if (happenings.length > HAPPENINGS_KEPT) happenings.shift()
    onHappening(happening)
  }

  mill.on('completed', ({ name }) => {
    const second = Math.floor(elapsedMs() / 1_000)
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
    perSecond.delete(second - SECONDS_SHOWN)
    if (name === 'collect-metrics') {
      totals.ticks += 1
      happened('tick', `the schedule ${SCHEDULE} ticked`)
    }
    if (name === 'publish-video') happened('done', 'publish-video ran after its transcodes')
    if (name === 'album-ready') happened('done', 'album-ready ran: the batch is complete')
  })
  mill.on('retried', ({ name, attempt, delayMs, error }) => {
    totals.retries += 1
    happened('retried', `${name}, attempt ${attempt}: ${said(error)}; again in ${seconds(delayMs)}`)
  })
  mill.on('failed', ({ name, attempt, error }) => {
    happened('failed', `${name}, attempt ${attempt}: ${said(error)}; now a dead letter`)
  })

  return {
    totals,
    elapsedMs,
    note: (text) => happened('note', text),
    follow: (next) => void (batch = next),
    async snapshot() {
      const [queues, running, shownBatch, schedule, deadLetters] = await Promise.all([
        queueRows(mill),
        runningRows(mill),
        batch && batchRow(mill, batch),
        scheduleRow(mill, totals.ticks),
        deadRows(mill),
      ])
      return {
        store,
        elapsedMs: elapsedMs(),
        queues,
        perSecond: lastSeconds(perSecond, Math.floor(elapsedMs() / 1_000)),
        retries: totals.retries,
        running,
        batch: shownBatch,
        schedule,
        deadLetters,
        happenings: [...happenings],
      }
    },
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

/** How the demo names a dead letter, on every surface. */
export function said(error: AttemptError | null): string {
  // Text from outside must not move the cursor.
  return (error?.message ?? 'no error was kept').replaceAll(/\p{Cc}+/gu, ' ')
}

export async function queueRows(mill: DemoMill): Promise<readonly QueueRow[]> {
  const rows = await mill.jobs.counts()
  return rows.map(({ queue, counts }) => ({ name: queue, counts, limit: LIMITS[queue] ?? '' }))
}

async function runningRows(mill: DemoMill): Promise<readonly RunningRow[]> {
  const { items } = await mill.jobs.list({ status: 'running' }, { limit: RUNNING_SHOWN })
  const now = Date.now()
  return items.toReversed().map((job) => ({
    name: job.name,
    attempt: job.attemptCount + 1,
    maxAttempts: job.maxAttempts,
    percent: typeof job.progress === 'number' ? job.progress : null,
    ranMs: job.startedAt === null ? 0 : now - job.startedAt.getTime(),
  }))
}

async function batchRow(mill: DemoMill, { id }: Pick<Batch, 'id'>): Promise<Snapshot['batch']> {
  const batch = await mill.batches.get(id)
  return batch && { name: batch.name, progress: batch.progress }
}

async function scheduleRow(mill: DemoMill, ticks: number): Promise<Snapshot['schedule']> {
  const schedule = await mill.schedules.get(SCHEDULE)
  if (schedule === null) return null
  const nextInMs = schedule.enabled && schedule.nextRunAt !== null ? schedule.nextRunAt.getTime() - Date.now() : null
  return { name: schedule.name, nextInMs, ticks }
}

/** The last ones. */
export async function deadRows(mill: DemoMill): Promise<readonly DeadRow[]> {
  const { items } = await mill.deadLetters.list({}, { limit: DEAD_SHOWN })
  return items.map(deadRow)
}

export function deadRow({ name, lastError, attemptCount }: Job): DeadRow {
  return { name, error: said(lastError), attempts: attemptCount }
}

function lastSeconds(perSecond: ReadonlyMap<number, number>, current: number): readonly number[] {
  const first = Math.max(0, current - SECONDS_SHOWN + 1)
  return Array.from({ length: current - first + 1 }, (_, index) => perSecond.get(first + index) ?? 0)
}
