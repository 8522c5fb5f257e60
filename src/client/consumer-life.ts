// The life of a manual consumer: a worker id of its own, a heartbeat, claims that are numbered and, after
// a lost reply, recovered. States: unborn → alive → (declared dead) → alive under a new id → stopped.
import { hostname } from 'node:os'
import { decideOutcome } from '../core/decide.ts'
import { MillraceError } from '../core/errors.ts'
import type { ClaimedJob, JobId, LeaseRef, WorkerId } from '../core/job.ts'
import { DEFAULTS } from '../core/limits.ts'
import type { Outcome } from '../core/outcome.ts'
import { DEFAULT_RETRY } from '../core/retry.ts'
import type { Transition } from '../core/transition.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createLoop } from '../runtime/service.ts'
import type { Loop } from '../runtime/service.ts'
import type { Backend, ClaimReply } from '../store/ports.ts'
import { retryStore } from './store-retry.ts'

export interface ConsumerLifeOptions {
  readonly runtime: Runtime
  readonly backend: Backend
  readonly queues: readonly string[]
  /** Visibility; absent: a job is kept as long as this life. */
  readonly leaseMs: number | undefined
}

export class ConsumerLife {
  readonly #options: ConsumerLifeOptions
  readonly #held = new Map<JobId, { readonly lease: number; readonly abort: AbortController }>()
  #worker: WorkerId | undefined
  #heartbeat: Loop | undefined
  #claimNo = 0
  #unknownClaim = false
  #claiming: Promise<unknown> = Promise.resolve()
  #stopped = false

  constructor(options: ConsumerLifeOptions) {
    this.#options = options
  }

  get heldRefs(): readonly LeaseRef[] {
    return [...this.#held].map(([jobId, { lease }]) => ({ jobId, lease: lease as LeaseRef['lease'] })) // kept as a number
  }

  /** One claim at a time: the numbers must reach the store in order. */
  claim(limit: number): Promise<readonly ClaimedJob[]> {
    const claim = this.#claiming.then(() => this.#claim(limit))
    this.#claiming = claim.catch(() => undefined)
    return claim
  }

  signalOf(job: ClaimedJob): AbortSignal {
    const held = this.#held.get(job.id)
    return held?.lease === job.lease ? held.abort.signal : AbortSignal.abort(leaseLost())
  }

  /** The current life; empty before the first claim. */
  get worker(): WorkerId {
    return this.#worker ?? ('' as WorkerId)
  }

  letGo({ jobId, lease }: LeaseRef): void {
    if (this.#held.get(jobId)?.lease === lease) this.#held.delete(jobId)
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    await this.#claiming
    await this.#heartbeat?.stop()
    const { backend, runtime } = this.#options
    // Started runs are given back, which counts no attempt; left to expire they would count as crashes.
    const released = this.heldRefs.map((held) => given(held, { kind: 'release', reason: 'the consumer stopped' }))
    this.#abortHeld()
    if (released.length > 0) await retryStore(runtime, () => backend.jobs.apply(released))
    const worker = this.#worker
    if (worker !== undefined) await retryStore(runtime, () => backend.workers.retire(worker))
  }

  async #claim(limit: number): Promise<readonly ClaimedJob[]> {
    if (this.#stopped) throw new MillraceError('STOPPED', 'this consumer has been stopped: create a new one')
    let worker = this.#worker ?? (await this.#beBorn())
    if (this.#unknownClaim) await this.#recover(worker)
    let reply = await this.#ask(worker, limit)
    if (reply.refused === 'worker-dead') {
      worker = await this.#beBorn()
      reply = await this.#ask(worker, limit)
    }
    const started = await this.#takeTokens(reply.jobs)
    for (const job of started) this.#held.set(job.id, { lease: job.lease, abort: new AbortController() })
    return started
  }

  async #ask(worker: WorkerId, limit: number): Promise<ClaimReply> {
    const { backend, queues, leaseMs } = this.#options
    this.#claimNo += 1
    // Until the reply is here, jobs may be ours without our knowing.
    this.#unknownClaim = true
    const visibility = leaseMs === undefined ? {} : { leaseMs }
    const reply = await backend.jobs.claim({ worker, claimNo: this.#claimNo, queues, limit, ...visibility })
    this.#unknownClaim = false
    return reply
  }

  /** Fences the lost claim and gives back what it had taken. */
  async #recover(worker: WorkerId): Promise<void> {
    const { backend, runtime } = this.#options
    const holdings = await retryStore(runtime, () => backend.jobs.holdings(worker, this.#claimNo))
    const unknown = holdings.filter(({ jobId, lease }) => this.#held.get(jobId)?.lease !== lease)
    const returned = unknown.map((held) => given(held, { kind: 'returned' }))
    if (returned.length > 0) await retryStore(runtime, () => backend.jobs.apply(returned))
    this.#unknownClaim = false
  }

  async #beBorn(): Promise<WorkerId> {
    const { backend, runtime, queues } = this.#options
    await this.#heartbeat?.stop()
    this.#abortHeld()
    const id = runtime.newId() as WorkerId // minted here
    const worker = { id, host: hostname(), pid: process.pid, queues, concurrency: 0 }
    await retryStore(runtime, () => backend.workers.register(worker))
    this.#worker = id
    this.#claimNo = 0
    this.#unknownClaim = false
    this.#heartbeat = createLoop({ name: 'consumer heartbeat', runtime, pass: () => this.#beat(id) })
    await this.#heartbeat.start()
    return id
  }

  async #beat(id: WorkerId): Promise<number> {
    const { alive, cancels } = await this.#options.backend.workers.beat({
      id,
      running: this.#held.size,
      commandsSeen: 0,
    })
    if (!alive && this.#worker === id) {
      this.#worker = undefined
      this.#abortHeld()
    }
    for (const { jobId, lease } of cancels) {
      const held = this.#held.get(jobId)
      if (held?.lease === lease) held.abort.abort(new MillraceError('JOB_CANCELLED', `job ${jobId} is to be cancelled`))
    }
    return DEFAULTS.heartbeatMs
  }

  #abortHeld(): void {
    for (const { abort } of this.#held.values()) abort.abort(leaseLost())
    this.#held.clear()
  }

  /** The same rule as in the worker: a limited job starts with a token or is deferred, and no attempt counts. */
  async #takeTokens(jobs: readonly ClaimedJob[]): Promise<readonly ClaimedJob[]> {
    const { backend, runtime } = this.#options
    const limited = jobs.filter(({ rateLimited }) => rateLimited)
    if (limited.length === 0) return jobs
    const requests = limited.map(({ queue, limitKey }) => ({ queue, key: limitKey }))
    const replies = await backend.limits.take(requests).catch(() => null)
    const refused = new Map<JobId, Transition>()
    for (const [index, { id, lease }] of limited.entries()) {
      const reply = replies?.[index]
      if (reply?.ok) continue
      const outcome: Outcome = reply === undefined ? { kind: 'returned' } : { kind: 'deferred', waitMs: reply.waitMs }
      refused.set(id, given({ jobId: id, lease }, outcome))
    }
    if (refused.size > 0) await retryStore(runtime, () => backend.jobs.apply([...refused.values()]))
    return jobs.filter(({ id }) => !refused.has(id))
  }
}

const NO_POLICY = { retry: DEFAULT_RETRY, classifiers: [], unknownErrors: 'retry' } as const

/** A run that ends without having been an attempt: nothing but its lease matters to the decision. */
function given(
  { jobId, lease }: LeaseRef,
  outcome: Extract<Outcome, { kind: 'returned' | 'deferred' | 'release' }>,
): Transition {
  const run = { id: jobId, lease, attemptCount: 0, maxAttempts: 1, crashCount: 0 }
  return decideOutcome(run, { outcome, ranMs: 0, nowMs: 0 }, NO_POLICY, () => 0)
}

function leaseLost(): MillraceError {
  return new MillraceError('LEASE_LOST', 'this run no longer owns its job')
}
