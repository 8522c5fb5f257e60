// What the outside world knows: which requests were made, which were acknowledged, which handlers started.
// Nothing in here comes from the store.
import type { BatchId, JobId } from '../../src/core/job.ts'

export interface Request {
  readonly no: number
  state: 'sent' | 'acknowledged' | 'unknown'
  /** The job that stands for it, as far as the producer was told. */
  job: JobId | null
}

export class Ledger {
  readonly requests: Request[] = []
  readonly startsByRequest = new Map<number, number>()
  readonly startsByJob = new Map<JobId, number>()
  /** An operator asked for these to be deleted. */
  readonly removals = new Set<JobId>()
  readonly batches: { readonly id: BatchId; sealed: boolean }[] = []
  readonly limitedStarts = new Map<string, number>()

  request(): Request {
    const request: Request = { no: this.requests.length, state: 'sent', job: null }
    this.requests.push(request)
    return request
  }

  started(no: number, job: JobId): number {
    const before = this.startsByRequest.get(no) ?? 0
    this.startsByRequest.set(no, before + 1)
    this.startsByJob.set(job, (this.startsByJob.get(job) ?? 0) + 1)
    return before
  }

  /** Jobs whose producer was told that they are stored. */
  *acknowledged(): Iterable<JobId> {
    for (const { state, job } of this.requests) if (state === 'acknowledged' && job !== null) yield job
  }
}
