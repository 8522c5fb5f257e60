// What an enqueue answers: the id, whether the job was new, and a way to follow it.
import type { JobId, JobStatus } from '../core/job.ts'
import type { InsertOutcome } from '../store/ports.ts'
import type { CancelAnswer } from './ending.ts'
import { jobNotFound } from './results.ts'
import type { AwaitResult } from './results.ts'
import type { WaitOptions } from './wait-options.ts'

export interface JobHandle<Result = unknown> {
  readonly id: JobId
  /** It stands for a job that was there before: the holder of the unique key, or of the given id. */
  readonly duplicate: boolean
  readonly outcome: InsertOutcome
  readonly connection: string
  /** Waits for the end of the job. Throws JOB_FAILED, JOB_CANCELLED, JOB_NOT_FOUND or WAIT_TIMEOUT. */
  result(options?: WaitOptions): Promise<Result>
  status(): Promise<JobStatus>
  cancel(reason?: string): Promise<CancelAnswer>
}

export interface HandleServices {
  readonly awaitResult: AwaitResult
  readonly status: (id: JobId, connection: string) => Promise<JobStatus | null>
  readonly cancel: (id: JobId, connection: string, reason?: string) => Promise<CancelAnswer>
}

export interface HandleFacts {
  readonly id: JobId
  readonly outcome: InsertOutcome
  readonly connection: string
}

/** `Result` is what the definition of the enqueued job promises; the store keeps no types. */
export function createHandle<Result>(facts: HandleFacts, services: HandleServices): JobHandle<Result> {
  const { id, outcome, connection } = facts
  return {
    id,
    outcome,
    connection,
    duplicate: outcome !== 'inserted',
    result: (options) => services.awaitResult(id, connection, options) as Promise<Result>, // see above
    async status() {
      const status = await services.status(id, connection)
      if (status === null) throw jobNotFound(id)
      return status
    },
    cancel: (reason) => services.cancel(id, connection, reason),
  }
}
