// Which jobs a filter means, on whole records. Refines memory/query.ts.
import type { StoredJob } from '../../core/job.ts'
import type { JobFilter } from '../../store/job-query.ts'

export function matches(job: StoredJob, filter: JobFilter): boolean {
  const { enqueuedAtMs, finishedAtMs } = job
  if (filter.queue !== undefined && job.queue !== filter.queue) return false
  if (filter.name !== undefined && job.name !== filter.name) return false
  if (filter.status !== undefined && !filter.status.includes(job.status)) return false
  if (filter.tag !== undefined && !job.tags.includes(filter.tag)) return false
  if (filter.batch !== undefined && job.batch !== filter.batch) return false
  if (filter.worker !== undefined && job.worker !== filter.worker) return false
  if (filter.schedule !== undefined && job.schedule?.name !== filter.schedule) return false
  if (filter.group !== undefined && job.group !== filter.group) return false
  if (filter.enqueuedFromMs !== undefined && enqueuedAtMs < filter.enqueuedFromMs) return false
  if (filter.enqueuedUntilMs !== undefined && enqueuedAtMs >= filter.enqueuedUntilMs) return false
  if (filter.finishedFromMs !== undefined && (finishedAtMs ?? -Infinity) < filter.finishedFromMs) return false
  if (filter.finishedUntilMs !== undefined && (finishedAtMs ?? Infinity) >= filter.finishedUntilMs) return false
  return filter.errorText === undefined || errorHas(job, filter.errorText)
}

function errorHas({ lastError }: StoredJob, text: string): boolean {
  if (lastError === null) return false
  return [lastError.name, lastError.message, lastError.code ?? ''].join('\n').toLowerCase().includes(text.toLowerCase())
}
