// Middleware around enqueue and around a run: an onion of functions, each of which calls `next` at most
// once and may look at, delay, change or refuse what passes.
import type { AnyJob, RunContext } from '../core/definition.ts'
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

export type RunMiddleware = (context: RunContext<unknown>, next: () => Promise<unknown>) => Promise<unknown>

type Layer<Call, Reply> = (call: Call, next: (changed?: Call) => Promise<Reply>) => Promise<Reply>

/** The first layer is the outermost. `innermost` does the work itself. */
export function compose<Call, Reply>(
  layers: readonly Layer<Call, Reply>[],
  innermost: (call: Call) => Promise<Reply>,
): (call: Call) => Promise<Reply> {
  return layers.reduceRight<(call: Call) => Promise<Reply>>(
    (inner, layer) => async (call) => {
      let called = false
      return await layer(call, (changed) => {
        // A second pass would enqueue or run the same job twice.
        if (called) return Promise.reject(new TypeError('a middleware called next() twice'))
        called = true
        return inner(changed ?? call)
      })
    },
    innermost,
  )
}
