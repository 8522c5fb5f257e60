// A consumer without our worker loop: claim, do the work in any way, then ack, nack or delete. The same
// leases and guards as in the worker; an answer that comes too late is `stale`, a value and not an error.
import { decideOutcome, decideRemove } from '../core/decide.ts'
import type { RunPolicy } from '../core/decide.ts'
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import type { BatchId, ClaimedJob, JobId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import type { Outcome } from '../core/outcome.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import { DEFAULT_RETRY } from '../core/retry.ts'
import type { Transition } from '../core/transition.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Connections } from './connections.ts'
import { ConsumerLife } from './consumer-life.ts'
import type { Registry } from './registry.ts'
import { retryStore } from './store-retry.ts'

export interface ConsumerOptions {
  readonly queues: readonly string[]
  /** A job that is neither settled nor extended within this time is given to another. Absent: it is kept while this process lives. */
  readonly visibility?: Duration
}

export interface ConsumedJob {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly input: Json
  readonly priority: number
  /** 1 for the first run. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly enqueuedAt: Date
  readonly tags: readonly string[]
  readonly meta: Json | null
  readonly batch: BatchId | null
  /** Aborts when the job is to be cancelled or was given to another. */
  readonly signal: AbortSignal
}

/** `cancelled`: cancellation had been asked for, so it ended as cancelled. `stale`: the job was no longer ours. */
export type SettleAnswer = 'done' | 'cancelled' | 'stale'

export interface Consumer extends AsyncDisposable {
  /** Up to `max` jobs, at once; none when nothing is ready. */
  claim(max?: number): Promise<readonly ConsumedJob[]>
  ack(job: ConsumedJob, result?: unknown): Promise<SettleAnswer>
  /** The run failed: retried or failed for good by the policy of the job; `delay` overrides the wait. */
  nack(job: ConsumedJob, options?: { readonly error?: unknown; readonly delay?: Duration }): Promise<SettleAnswer>
  /** Moves the visibility to this long from now. */
  extend(job: ConsumedJob, duration: Duration): Promise<'extended' | 'stale'>
  delete(job: ConsumedJob): Promise<SettleAnswer>
  /** Gives back what is not settled and ends the life of this consumer. */
  stop(): Promise<void>
}

export interface ConsumerParts {
  readonly connections: Connections
  readonly runtime: Runtime
  readonly registry: Registry
}

const VISIBILITY = { minMs: 100, maxMs: LIMITS.timeoutMaxMs }

export function createConsumer({ connections, runtime, registry }: ConsumerParts, options: ConsumerOptions): Consumer {
  checkKnownOptions(options, ['queues', 'visibility'], 'consumer()')
  if (!Array.isArray(options.queues) || options.queues.length === 0) {
    throw invalidOption('queues', options.queues, 'one or more queue names')
  }
  const queues = options.queues.map((queue) => checkName(queue, 'queue'))
  const connection = connections.common(
    queues.map((queue) => connections.ofQueue(queue)),
    'one consumer',
  )
  const backend = connections.backend(connection)
  const leaseMs =
    options.visibility === undefined ? undefined : parseDuration(options.visibility, 'visibility', VISIBILITY)
  const life = new ConsumerLife({ runtime, backend, queues, leaseMs })
  // The lease is not shown: a caller could only get it wrong.
  const claims = new WeakMap<ConsumedJob, { readonly claimed: ClaimedJob; readonly startMs: number }>()

  function claimOf(job: ConsumedJob): { readonly claimed: ClaimedJob; readonly startMs: number } {
    const claim = claims.get(job)
    if (claim === undefined) throw invalidOption('job', job, 'a job that claim() of this consumer returned')
    return claim
  }

  async function settle(
    { id: jobId, lease }: ClaimedJob,
    transitions: readonly Transition[],
    ifMissing: SettleAnswer = 'stale',
  ): Promise<SettleAnswer> {
    const verdicts = await retryStore(runtime, () => backend.jobs.apply(transitions))
    life.letGo({ jobId, lease })
    const verdict = verdicts.at(-1)
    if (verdict === 'missing') return ifMissing
    if (verdict === 'alternative') return 'cancelled'
    return verdict === 'applied' || verdict === 'already' ? 'done' : 'stale'
  }

  async function end(job: ConsumedJob, outcome: Outcome, policy: RunPolicy): Promise<SettleAnswer> {
    const { claimed, startMs } = claimOf(job)
    const runEnd = { outcome, ranMs: Math.max(0, runtime.clock.monoMs() - startMs), nowMs: runtime.clock.nowMs() }
    return settle(claimed, [decideOutcome(claimed, runEnd, policy, runtime.random)])
  }

  async function policyOf({ name, queue }: ClaimedJob, delay?: Duration): Promise<RunPolicy> {
    const definition = registry.find(name)
    const record = definition?.retry === undefined ? await retryStore(runtime, () => backend.queues.get(queue)) : null
    const afterMs = delay === undefined ? undefined : parseDuration(delay, 'delay')
    const usual = definition?.classify === undefined ? [] : [definition.classify]
    return {
      retry: definition?.retry ?? record?.retry ?? DEFAULT_RETRY,
      classifiers: afterMs === undefined ? usual : [() => ({ retry: { afterMs } })],
      unknownErrors: definition?.unknownErrors ?? 'retry',
    }
  }

  return {
    async claim(max = 1) {
      checkInteger(max, 'max', 1, LIMITS.claimBatchMax)
      const jobs = await life.claim(max)
      const startMs = runtime.clock.monoMs()
      return jobs.map((claimed) => {
        const job = viewClaimed(claimed, life.signalOf(claimed))
        claims.set(job, { claimed, startMs })
        return job
      })
    },
    async ack(job, result) {
      const limit = { maxBytes: LIMITS.resultBytesMax, code: 'RESULT_TOO_LARGE' } as const
      const text = result === undefined ? null : encodePayload(result, 'result', limit).text
      return end(job, { kind: 'done', result: text }, { retry: DEFAULT_RETRY, classifiers: [], unknownErrors: 'retry' })
    },
    async nack(job, nackOptions = {}) {
      checkKnownOptions(nackOptions, ['error', 'delay'], 'nack()')
      const { error = new Error('the consumer gave no reason'), delay } = nackOptions
      return end(job, { kind: 'threw', error }, await policyOf(claimOf(job).claimed, delay))
    },
    async extend(job, duration) {
      const { id: jobId, lease } = claimOf(job).claimed
      const ms = parseDuration(duration, 'extend', VISIBILITY)
      const lost = await retryStore(runtime, () => backend.jobs.extend([{ jobId, lease }], ms))
      return lost.length === 0 ? 'extended' : 'stale'
    },
    async delete(job) {
      const { claimed } = claimOf(job)
      const [, request] = decideRemove(claimed.id)
      // Only while the lease is ours: then the end of this run deletes the job.
      const guarded = { ...request, guard: { ...request.guard, lease: claimed.lease } }
      const cancel: Outcome = { kind: 'cancel', reason: 'deleted by its consumer' }
      const policy = { retry: DEFAULT_RETRY, classifiers: [], unknownErrors: 'retry' } as const
      const ended = decideOutcome(claimed, { outcome: cancel, ranMs: 0, nowMs: 0 }, policy, runtime.random)
      // Missing: our own first try, whose reply was lost, has deleted it.
      return settle(claimed, [guarded, ended], 'done')
    },
    stop: () => life.stop(),
    [Symbol.asyncDispose]: () => life.stop(),
  }
}

function viewClaimed(claimed: ClaimedJob, signal: AbortSignal): ConsumedJob {
  const { id, name, queue, priority, maxAttempts, tags, batch } = claimed
  return {
    id,
    name,
    queue,
    priority,
    maxAttempts,
    tags,
    batch,
    signal,
    input: decodePayload(claimed.payload),
    attempt: claimed.attemptCount + 1,
    enqueuedAt: new Date(claimed.enqueuedAtMs),
    meta: claimed.meta === null ? null : decodePayload(claimed.meta),
  }
}
