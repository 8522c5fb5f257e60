// Inline mode: every call that can make a job ready resolves after that job, and whatever it enqueued, has
// run. A call made by a handler only enqueues; the drain that runs the handler takes it from there.
import { AssertionError } from 'node:assert'
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

/** What follows a call, given its answer; it answers in its place. */
type Follow = (answer: unknown) => Promise<unknown>

export function inlineClient<Known extends readonly AnyJob[]>(
  client: Client<Known>,
  { stepper, ledger, errors }: InlineParts,
): Client<Known> {
  const run: Follow = async (answer) => {
    const failure = await stepper.runInline()
    if (failure !== undefined && errors === 'throw') throw failure.thrown
    return answer
  }
  /** Ending a job is no reason to hear of the failures of others. */
  const runQuietly: Follow = async (answer) => {
    await stepper.runInline()
    return answer
  }
  const openBatch: Follow = async (answer) => {
    const batch = (await run(answer)) as Batch<Known> // as both verbs that are followed by it promise
    return followed(followed(batch, ['add', 'addMany', 'seal'], run), ['cancel'], runQuietly)
  }

  // The same client without its types: what comes in has been checked by those of `Client`.
  const plain = client as unknown as { enqueue(...args: readonly unknown[]): Promise<JobHandle> }

  /** It waits, so it lets time pass, and failures reach it as they would in production. */
  async function enqueueAndWait(job: unknown, input: unknown, options?: EnqueueOptions, wait?: WaitOptions) {
    const handle = await plain.enqueue(job, input, options)
    const isEnded = (): boolean => isFinal(ledger.statusOf(handle.id) ?? 'cancelled')
    await stepper.runUntil(isEnded)
    if (isEnded()) return handle.result(wait)
    const message = `nothing is left to run, but job ${handle.id} is ${ledger.statusOf(handle.id)}: waiting for it would never end`
    throw new AssertionError({ message, operator: 'enqueueAndWait' })
  }

  return {
    ...followed(followed(client, ['enqueue', 'enqueueMany', 'flow'], run), ['batch', 'enqueueBatch'], openBatch),
    enqueueAndWait: enqueueAndWait as Client<Known>['enqueueAndWait'],
    jobs: followed(client.jobs, ['cancel', 'remove'], runQuietly),
    queues: followed(client.queues, ['resume', 'configure'], run),
    batches: followed(client.batches, ['cancel'], runQuietly),
    schedules: followed(client.schedules, ['upsert', 'resume', 'runNow'], run),
    deadLetters: followed(client.deadLetters, ['replay', 'replayAsNew', 'replayMany'], run),
  }
}

/** The same object; these of its methods answer later. */
function followed<Target extends object>(target: Target, verbs: readonly (keyof Target)[], follow: Follow): Target {
  const changed = verbs.map((name) => {
    // All of them are asynchronous methods; what they take and answer only passes through.
    const verb = target[name] as (...args: unknown[]) => Promise<unknown>
    return [name, async (...args: unknown[]) => follow(await verb.apply(target, args))] as const
  })
  return { ...target, ...Object.fromEntries(changed) }
}
