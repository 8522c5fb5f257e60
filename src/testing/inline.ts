// Inline mode: every call that can make a job ready resolves after that job, and whatever it enqueued, has
// run. A call made by a handler only enqueues; the drain that runs the handler takes it from there.
import type { Batch, Client } from '../client/client-types.ts'
import type { EnqueueOptions } from '../client/enqueue-options.ts'
import type { JobHandle } from '../client/handle.ts'
import type { WaitOptions } from '../client/wait-options.ts'
import type { AnyJob } from '../core/definition.ts'
import { isFinal } from '../core/job.ts'
import type { Ledger } from './ledger.ts'
import type { Stepper } from './stepper.ts'

export interface InlineParts {
  readonly stepper: Stepper
  readonly ledger: Ledger
  readonly errors: 'throw' | 'store'
}

/** The types of the verbs are those of `Client`; here they only pass through, hence `never`. */
type Verb = (...args: never[]) => Promise<unknown>

export function inlineClient<Known extends readonly AnyJob[]>(
  client: Client<Known>,
  { stepper, ledger, errors }: InlineParts,
): Client<Known> {
  /** `keep`: the caller is told of failures in another way. */
  async function runAll(keep: boolean): Promise<void> {
    const failure = await stepper.runInline()
    if (failure !== undefined && errors === 'throw' && !keep) throw failure.thrown
  }

  const after = <Value extends Verb>(verb: Value, keep = false): Value => {
    const wrapped = async (...args: Parameters<Value>): Promise<unknown> => {
      const value = await verb(...args)
      await runAll(keep)
      return value
    }
    // The same arguments and the same answer, only later.
    return wrapped as Value
  }

  const open = (batch: Batch<Known>): Batch<Known> => ({
    ...batch,
    add: after(batch.add),
    addMany: after(batch.addMany),
    seal: after(batch.seal),
    cancel: after(batch.cancel),
  })

  const opening = (verb: Verb) => async (...args: never[]) => {
    const batch = (await verb(...args)) as Batch<Known> // as both verbs of `Client` promise
    await runAll(false)
    return open(batch)
  }

  /** It waits, so it lets time pass, and failures reach it as they would in production. */
  async function enqueueAndWait(job: never, input: never, options?: EnqueueOptions, wait?: WaitOptions) {
    const enqueue = client.enqueue as unknown as (...args: unknown[]) => Promise<JobHandle> // its types are erased here
    const handle = await enqueue(job, input, options)
    const isEnded = (): boolean => {
      const entry = ledger.entries().find((one) => one.job.id === handle.id)
      return entry === undefined || isFinal(entry.job.status)
    }
    await stepper.runUntil(isEnded)
    return handle.result(wait)
  }

  const { jobs, queues, schedules, deadLetters, batches } = client
  return {
    ...client,
    enqueue: after(client.enqueue),
    enqueueMany: after(client.enqueueMany),
    flow: after(client.flow),
    enqueueAndWait: enqueueAndWait as Client<Known>['enqueueAndWait'],
    batch: opening(client.batch) as Client<Known>['batch'],
    enqueueBatch: opening(client.enqueueBatch) as Client<Known>['enqueueBatch'],
    jobs: { ...jobs, cancel: after(jobs.cancel, true) as typeof jobs.cancel, remove: after(jobs.remove, true) },
    queues: { ...queues, resume: after(queues.resume), configure: after(queues.configure) },
    batches: { ...batches, cancel: after(batches.cancel, true) },
    schedules: {
      ...schedules,
      upsert: after(schedules.upsert),
      resume: after(schedules.resume),
      runNow: after(schedules.runNow),
    },
    deadLetters: {
      ...deadLetters,
      replay: after(deadLetters.replay),
      replayAsNew: after(deadLetters.replayAsNew),
      replayMany: after(deadLetters.replayMany),
    },
  }
}
