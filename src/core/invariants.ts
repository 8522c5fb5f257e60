// What must hold of any world, whatever happened to it. The simulator checks changes as they happen and the
// whole at the end; `doctor` checks the whole.
import { countedAs } from './batch.ts'
import type { BatchCounts } from './batch.ts'
import { EDGES } from './edges.ts'
import type { Edge } from './edges.ts'
import { isFinal } from './job.ts'
import type { AttemptRow, BatchId, JobStatus, StoredJob } from './job.ts'

/** The facts of a job that its next change is compared with. */
export type JobFacts = Pick<
  StoredJob,
  | 'id'
  | 'status'
  | 'lease'
  | 'attemptCount'
  | 'maxAttempts'
  | 'crashCount'
  | 'cancelRequested'
  | 'runAtMs'
  | 'enqueuedAtMs'
>

const LEGAL_MOVES: ReadonlySet<string> = new Set(
  Object.values(EDGES).flatMap(({ from, to }: Edge) =>
    from.flatMap((source) => to.map((target) => `${source}→${target}`)),
  ),
)

/** What is wrong with one change, or null. `before` is null for a new job. */
export function checkChange(before: JobFacts | null, after: JobFacts, nowMs: number): string | null {
  if (after.attemptCount > after.maxAttempts) return `attempt ${after.attemptCount} of ${after.maxAttempts}`
  if (before === null) return isFinal(after.status) || after.status === 'running' ? `was born ${after.status}` : null
  const move = `${before.status}→${after.status}`
  // Hybrid: a run may end before anybody has marked it.
  const asRun = before.status === 'dispatched' && LEGAL_MOVES.has(`running→${after.status}`)
  if (before.status !== after.status && !LEGAL_MOVES.has(move) && !asRun) return `moved ${move}, which no edge allows`
  if (after.lease < before.lease) return `its lease went back from ${before.lease} to ${after.lease}`
  if (after.enqueuedAtMs !== before.enqueuedAtMs) return 'the time of its first enqueue changed'
  const isMark = before.status === 'dispatched' && after.status === 'running' && after.lease === before.lease
  if (isLeased(after.status) && !isLeased(before.status) && !isMark) {
    if (after.lease <= before.lease) return `was claimed under lease ${after.lease} after ${before.lease}`
    if (after.runAtMs > nowMs) return `was claimed ${after.runAtMs - nowMs} ms before its time`
  }
  if (before.cancelRequested && isLeased(before.status) && isWaiting(after.status)) {
    return `goes on as ${after.status} although cancellation was asked for`
  }
  return null
}

function isWaiting(status: JobStatus): boolean {
  return !isFinal(status) && !isLeased(status)
}

function isLeased(status: JobStatus): boolean {
  return status === 'running' || status === 'dispatched'
}

const COUNTING: ReadonlySet<string> = new Set(['success', 'retry', 'failed', 'expired'])

/** What is wrong with the audit trail of a job, or null. */
export function checkAttempts(job: JobFacts, rows: readonly AttemptRow[]): string | null {
  let counted = 0
  let lastLease = 0
  for (const row of rows) {
    if (row.status === 'attempting') continue
    if (row.status === 'replayed') {
      // A job replayed as itself starts counting again; one replayed as another job keeps its count.
      if (row.attempt === 0) counted = 0
      continue
    }
    if (row.lease === 0) continue
    if (row.lease <= lastLease) return `lease ${row.lease} was settled after lease ${lastLease}`
    lastLease = row.lease
    if (COUNTING.has(row.status) || row.status === 'cancelled') counted += 1
  }
  if (lastLease > job.lease) return `lease ${lastLease} was settled, but ${job.lease} is the newest`
  return counted === job.attemptCount
    ? null
    : `${job.attemptCount} attempts are counted, the audit trail has ${counted}`
}

/** What is wrong with the counters of a batch, or null. `removed` jobs have left both sides. */
export function checkBatch(
  id: BatchId,
  counts: BatchCounts,
  members: readonly Pick<StoredJob, 'status'>[],
): string | null {
  const recount = { total: members.length, pending: 0, completed: 0, failed: 0, cancelled: 0 }
  for (const { status } of members) recount[countedAs(status)] += 1
  const off = Object.entries(recount).filter(([name, count]) => counts[name as keyof BatchCounts] !== count)
  if (off.length === 0) return null
  return `batch ${id}: ${off.map(([name, count]) => `${name} is ${counts[name as keyof BatchCounts]}, a recount gives ${count}`).join(', ')}`
}

/** Groups that have more than one job past their gate. Order is checked where starts are seen. */
export function checkGroups(jobs: readonly Pick<StoredJob, 'id' | 'status' | 'queue' | 'group'>[]): string | null {
  const ahead = new Map<string, string>()
  for (const { id, status, queue, group } of jobs) {
    if (group === null || !(status === 'queued' || status === 'dispatched' || status === 'running')) continue
    const key = `${queue}/${group}`
    const other = ahead.get(key)
    if (other !== undefined) return `group ${key}: ${other} and ${id} are both past the gate`
    ahead.set(key, id)
  }
  return null
}
