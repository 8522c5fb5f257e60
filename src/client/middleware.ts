// Middleware around enqueue: it may look at, delay, change or refuse what passes.
import type { AnyJob } from '../core/definition.ts'
import type { InsertOutcome } from '../store/ports.ts'
import type { JobId } from '../core/job.ts'
import type { EnqueueOptions } from './enqueue-options.ts'

export interface EnqueueCall {
  readonly job: AnyJob
  readonly input: unknown
  readonly options: EnqueueOptions
}

export interface EnqueueReply {
  readonly id: JobId
  readonly outcome: InsertOutcome
}

/** `next()` goes on with the call as it is, `next({ ...call, options })` with a changed one. */
export type EnqueueMiddleware = (
  call: EnqueueCall,
  next: (changed?: EnqueueCall) => Promise<EnqueueReply>,
) => Promise<EnqueueReply>
