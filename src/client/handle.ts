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
  return new Handle<Result>(facts, services)
}

// A class although it has no life: bulk calls make thousands, and closures cost more than the fields.
class Handle<Result> implements JobHandle<Result> {
  readonly id: JobId
  readonly outcome: InsertOutcome
  readonly duplicate: boolean
  readonly connection: string
  readonly #services: HandleServices

  constructor({ id, outcome, connection }: HandleFacts, services: HandleServices) {
    this.id = id
    this.outcome = outcome
    this.duplicate = outcome !== 'inserted'
    this.connection = connection
    this.#services = services
  }

  result(options?: WaitOptions): Promise<Result> {
    return this.#services.awaitResult(this.id, this.connection, options) as Promise<Result> // see above
  }

  async status(): Promise<JobStatus> {
    const status = await this.#services.status(this.id, this.connection)
    if (status === null) throw jobNotFound(this.id)
    return status
  }

  cancel(reason?: string): Promise<CancelAnswer> {
    return this.#services.cancel(this.id, this.connection, reason)
  }
}
