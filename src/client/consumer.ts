// A consumer without our worker loop: claim, do the work in any way, then ack, nack or delete. The same
// leases and guards as in the worker; an answer that comes too late is `stale`, a value and not an error.
import { userMeta } from '../core/carried.ts'
import { decideOutcome, decideRemove } from '../core/decide.ts'
import { DEFAULT_POLICY, runPolicy } from '../core/policy.ts'
import type { RunPolicy, SystemPolicy } from '../core/policy.ts'
import type { FailedHook } from '../core/definition.ts'
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { isMillraceError } from '../core/errors.ts'
import type { BatchId, ClaimedJob, JobId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import type { Outcome } from '../core/outcome.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import { DEFAULT_LANES, laneOf } from '../core/priority.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { EventHub } from '../runtime/events.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { RunTrace, Tracing } from '../runtime/tracing.ts'
import { reportVerdict } from '../runtime/verdicts.ts'
import type { Backend } from '../store/ports.ts'
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

export interface NackOptions {
  readonly error?: unknown
  readonly delay?: Duration
}

export interface Consumer extends AsyncDisposable {
  /** Up to `max` jobs, at once; none when nothing is ready. */
  claim(max?: number): Promise<readonly ConsumedJob[]>
  ack(job: ConsumedJob, result?: unknown): Promise<SettleAnswer>
  /** The run failed: retried or failed for good by the policy of the job; `delay` overrides the wait. */
  nack(job: ConsumedJob, options?: NackOptions): Promise<SettleAnswer>
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
  readonly policy: SystemPolicy
  readonly hub: EventHub
  readonly onFailed: FailedHook | undefined
  readonly probe: Probe | undefined
  readonly tracing: Tracing | undefined
}

const VISIBILITY = { minMs: 100, maxMs: LIMITS.timeoutMaxMs }

export function createConsumer(parts: ConsumerParts, options: ConsumerOptions): Consumer {
  checkKnownOptions(options, ['queues', 'visibility'], 'consumer()')
  const { queues: asked, visibility } = options
  if (!Array.isArray(asked) || asked.length === 0) throw invalidOption('queues', asked, 'one or more queue names')
  const queues = asked.map((queue) => checkName(queue, 'queue'))
  const spans = queues.map((queue) => parts.connections.ofQueue(queue))
  const connection = parts.connections.common(spans, 'one consumer')
  const backend = parts.connections.backend(connection)
  const leaseMs = visibility === undefined ? undefined : parseDuration(visibility, 'visibility', VISIBILITY)
  const life = new ConsumerLife({ runtime: parts.runtime, backend, queues, leaseMs })
  return new ManualConsumer(parts, backend, connection, life)
}

/** The consumers that are open, so that stopping a Millrace stops them too. */
export function createConsumerDesk() {
  const open = new Set<Consumer>()
  return {
    open(consumer: Consumer): Consumer {
      open.add(consumer)
      return consumer
    },
    async stopAll(): Promise<void> {
      await Promise.all([...open].map((consumer) => consumer.stop()))
      open.clear()
    },
  }
}

interface Claim {
  readonly claimed: ClaimedJob
  readonly startMs: number
  /** Until the store has answered. */
  trace: RunTrace | undefined
}

class ManualConsumer implements Consumer {
  readonly #parts: ConsumerParts
  readonly #backend: Backend
  readonly #connection: string
  readonly #life: ConsumerLife
  // The lease is not shown: a caller could only get it wrong.
  readonly #claims = new WeakMap<ConsumedJob, Claim>()

  constructor(parts: ConsumerParts, backend: Backend, connection: string, life: ConsumerLife) {
    this.#parts = parts
    this.#backend = backend
    this.#connection = connection
    this.#life = life
  }

  async claim(max = 1): Promise<readonly ConsumedJob[]> {
    checkInteger(max, 'max', 1, LIMITS.claimBatchMax)
    const jobs = await this.#life.claim(max)
    const { runtime, probe, tracing } = this.#parts
    const startMs = runtime.clock.monoMs()
    return jobs.map((claimed) => {
      probe?.started(claimed, laneOf(claimed.priority, DEFAULT_LANES), this.#life.worker)
      const job = viewClaimed(claimed, this.#life.signalOf(claimed))
      const trace = tracing?.isOn() ? tracing.run(claimed, this.#life.worker) : undefined
      if (trace !== undefined) endWithLease(trace, job.signal)
      this.#claims.set(job, { claimed, startMs, trace })
      return job
    })
  }

  async ack(job: ConsumedJob, result?: unknown): Promise<SettleAnswer> {
    const limit = { maxBytes: LIMITS.resultBytesMax, code: 'RESULT_TOO_LARGE' } as const
    const text = result === undefined ? null : encodePayload(result, 'result', limit).text
    return this.#end(this.#claimOf(job), { kind: 'done', result: text }, DEFAULT_POLICY)
  }

  async nack(job: ConsumedJob, options: NackOptions = {}): Promise<SettleAnswer> {
    checkKnownOptions(options, ['error', 'delay'], 'nack()')
    const { error = new Error('the consumer gave no reason'), delay } = options
    const claim = this.#claimOf(job)
    const afterMs = delay === undefined ? undefined : parseDuration(delay, 'delay')
    return this.#end(claim, { kind: 'threw', error }, await this.#policyOf(claim.claimed, afterMs))
  }

  async extend(job: ConsumedJob, duration: Duration): Promise<'extended' | 'stale'> {
    const { id: jobId, lease } = this.#claimOf(job).claimed
    const ms = parseDuration(duration, 'extend', VISIBILITY)
    const lost = await retryStore(this.#parts.runtime, () => this.#backend.jobs.extend([{ jobId, lease }], ms))
    return lost.length === 0 ? 'extended' : 'stale'
  }

  async delete(job: ConsumedJob): Promise<SettleAnswer> {
    const claim = this.#claimOf(job)
    const { claimed } = claim
    const [, request] = decideRemove(claimed.id)
    // Only while the lease is ours: then the end of this run deletes the job.
    const guarded = { ...request, guard: { ...request.guard, lease: claimed.lease } }
    const outcome: Outcome = { kind: 'cancel', reason: 'deleted by its consumer' }
    const ended = decideOutcome(claimed, { outcome, ranMs: 0, nowMs: 0 }, DEFAULT_POLICY, () => 0)
    claim.trace?.ended(outcome)
    // Missing: our own first try, whose reply was lost, has deleted it.
    return this.#settle(claim, [guarded, ended], 'done')
  }

  stop(): Promise<void> {
    return this.#life.stop()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#life.stop()
  }

  #claimOf(job: ConsumedJob): Claim {
    const claim = this.#claims.get(job)
    if (claim === undefined) throw invalidOption('job', job, 'a job that claim() of this consumer returned')
    return claim
  }

  #end(claim: Claim, outcome: Outcome, policy: RunPolicy): Promise<SettleAnswer> {
    const { claimed, startMs, trace } = claim
    const { clock, random } = this.#parts.runtime
    const ranMs = Math.max(0, clock.monoMs() - startMs)
    trace?.ended(outcome)
    return this.#settle(
      claim,
      [decideOutcome(claimed, { outcome, ranMs, nowMs: clock.nowMs() }, policy, random)],
      'stale',
    )
  }

  async #settle(claim: Claim, transitions: readonly Transition[], ifMissing: SettleAnswer): Promise<SettleAnswer> {
    const { claimed, trace } = claim
    const verdicts = await retryStore(this.#parts.runtime, () => this.#backend.jobs.apply(transitions))
    this.#life.letGo({ jobId: claimed.id, lease: claimed.lease })
    const verdict = verdicts.at(-1)
    const transition = transitions.at(-1)
    if (transition !== undefined && verdict !== undefined) {
      // A second answer for the same job has no span of its own.
      claim.trace = undefined
      trace?.settled(transition, verdict)
      this.#tell(claimed, transition, verdict)
    }
    if (verdict === 'missing') return ifMissing
    if (verdict === 'alternative') return 'cancelled'
    return verdict === 'applied' || verdict === 'already' ? 'done' : 'stale'
  }

  /** The same events and hooks as after a run of the worker. */
  #tell(claimed: ClaimedJob, transition: Transition, verdict: Verdict): void {
    const { registry, hub, onFailed, runtime, probe } = this.#parts
    const run = { claimed, worker: this.#life.worker, definition: registry.find(claimed.name) }
    reportVerdict(run, transition, verdict, {
      events: hub,
      logger: runtime.logger,
      connection: this.#connection,
      onFailed,
      probe,
    })
  }

  async #policyOf({ name, queue }: ClaimedJob, afterMs: number | undefined): Promise<RunPolicy> {
    const { registry, runtime, policy } = this.#parts
    const kind = registry.find(name)
    const record = kind?.retry === undefined ? await retryStore(runtime, () => this.#backend.queues.get(queue)) : null
    const usual = runPolicy(kind, record?.retry ?? null, policy)
    return afterMs === undefined ? usual : { ...usual, classifiers: [() => ({ retry: { afterMs } })] }
  }
}

/** A run that loses its job, or whose consumer stops, has ended although nobody says so. */
function endWithLease(trace: RunTrace, signal: AbortSignal): void {
  const end = (): void => {
    if (isMillraceError(signal.reason, 'LEASE_LOST')) trace.ended({ kind: 'release', reason: 'lease-lost' })
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
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
    meta: userMeta(claimed.meta),
  }
}
