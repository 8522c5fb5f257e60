// Output without a terminal: one line per notable event and a line of counts, each complete by itself, so
// that it can be piped, searched and kept in a log.
import { JOB_STATUSES } from '../../src/index.ts'
import type { JobStatus } from '../../src/index.ts'
import { seconds } from './watch.ts'
import type { DeadRow, Happening, QueueRow, Snapshot } from './watch.ts'

export function happeningLine({ atMs, kind, text }: Happening): string {
  return `${seconds(atMs).padStart(8)}  ${kind.padEnd(8)} ${text}`
}

export function countsLine({ elapsedMs, queues }: Snapshot): string {
  return `${seconds(elapsedMs).padStart(8)}  counts   ${statusCounts(queues)}`
}

/** `queued 3, running 8, completed 23`: every status that has a job, over these queues. */
export function statusCounts(queues: readonly QueueRow[]): string {
  const total = (status: JobStatus): number => queues.reduce((sum, { counts }) => sum + counts[status], 0)
  const present = JOB_STATUSES.filter((status) => total(status) > 0)
  return present.length === 0 ? 'no jobs' : present.map((status) => `${status} ${total(status)}`).join(', ')
}

export function deadLine({ name, error, attempts }: DeadRow): string {
  return `  ${name}: ${error} (${attempts} ${attempts === 1 ? 'attempt' : 'attempts'})`
}
