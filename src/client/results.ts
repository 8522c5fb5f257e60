// Awaiting a job: its decoded result, or a typed error that says how it ended instead.
import type { AttemptError } from '../core/attempt-error.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId, StoredJob } from '../core/job.ts'
import { decodePayload } from '../core/payload.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Connections } from './connections.ts'
import { FinishWatch } from './finish-watch.ts'
import { withinWait } from './wait-options.ts'
import type { WaitOptions } from './wait-options.ts'

/** The result of the job once it has completed. Throws JOB_FAILED, JOB_CANCELLED, JOB_NOT_FOUND, WAIT_TIMEOUT. */
export type AwaitResult = (id: JobId, connection: string | undefined, options?: WaitOptions) => Promise<unknown>

export function createAwaitResult(connections: Connections, runtime: Runtime): AwaitResult {
  const watches = new Map<string, FinishWatch>()

  function watchOn(connection: string): FinishWatch {
    const known = watches.get(connection)
    if (known !== undefined) return known
    const watch = new FinishWatch(connections.backend(connection), runtime)
    watches.set(connection, watch)
    return watch
  }

  async function find(id: JobId): Promise<string> {
    const [only, ...others] = connections.names
    if (only !== undefined && others.length === 0) return only
    const found = await connections.locate(id)
    if (found === null) throw jobNotFound(id)
    return found.connection
  }

  return async (id, connection, options = {}) => {
    const at = connection ?? (await find(id))
    const job = await withinWait(runtime, options, `job ${id}`, (signal) => watchOn(at).ended(id, signal))
    return resultOf(id, job)
  }
}

function resultOf(id: JobId, job: StoredJob | null): unknown {
  if (job === null) throw jobNotFound(id)
  const about = `job ${id} (${job.name})`
  const details = { jobId: id, name: job.name, queue: job.queue }
  if (job.status === 'failed') {
    const because = job.lastError === null ? 'no error was kept' : `${job.lastError.name}: ${job.lastError.message}`
    const cause = job.lastError === null ? undefined : storedError(job.lastError)
    throw new MillraceError(
      'JOB_FAILED',
      `${about} failed after ${job.attemptCount} ${job.attemptCount === 1 ? 'attempt' : 'attempts'}: ${because}`,
      {
        cause,
        details,
      },
    )
  }
  if (job.status === 'cancelled') throw new MillraceError('JOB_CANCELLED', `${about} was cancelled`, { details })
  return job.result === null ? undefined : decodePayload(job.result)
}

export function jobNotFound(id: JobId): MillraceError {
  const message = `there is no job ${id}: it was removed, or it lives on another connection`
  return new MillraceError('JOB_NOT_FOUND', message, { details: { jobId: id } })
}

/** An error again, as far as it was kept: what was thrown elsewhere, with its own name, code, class and stack. */
export function storedError(stored: AttemptError): Error & AttemptError {
  return Object.assign(new Error(stored.message), stored)
}
