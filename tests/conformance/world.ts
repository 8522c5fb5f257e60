// What a test works with: a fresh store, its clock, and short words for the things tests do all the time.
import { expect } from 'vitest'
import type {
  BatchId,
  ClaimedJob,
  Dependency,
  JobId,
  JobStatus,
  NewJob,
  StoredJob,
  WorkerId,
} from '../../src/core/job.ts'
import { DEFAULTS, LIMITS } from '../../src/core/limits.ts'
import { DEFAULT_LANES } from '../../src/core/priority.ts'
import type { Transition, Verdict } from '../../src/core/transition.ts'
import type { UniqueHold } from '../../src/core/unique.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createIdSource } from '../../src/runtime/runtime.ts'
import type { NewBatch } from '../../src/store/batch-store.ts'
import type { Backend, ClaimReply, ClaimRequest, InsertReply, InsertResult } from '../../src/store/ports.ts'
import type { QueueSettings } from '../../src/store/queue-store.ts'
import type { BeatReply, BeatRequest } from '../../src/store/worker-store.ts'
import type { TestClock } from './manual-clock.ts'

export interface Setup {
  /** Registers a test; each runs on a store of its own. */
  readonly test: (title: string, run: (world: World) => Promise<void>) => void
}

export interface World extends Omit<Backend, 'start' | 'stop'> {
  readonly backend: Backend
  readonly clock: TestClock
  newId(): JobId
  job(fields?: Partial<NewJob>): NewJob
  /** Inserts in one call, which must be accepted; answers the result of each. */
  accept(...jobs: readonly Partial<NewJob>[]): Promise<readonly InsertResult[]>
  /** The same for jobs that must all be new; answers their ids. */
  add(...jobs: readonly Partial<NewJob>[]): Promise<readonly JobId[]>
  addOne(fields?: Partial<NewJob>): Promise<JobId>
  worker(): Promise<TestWorker>
  beat(id: WorkerId, fields?: Partial<BeatRequest>): Promise<BeatReply>
  /** Declares the worker dead, as maintenance does after watching its beat stand still. */
  kill(worker: TestWorker): Promise<void>
  apply(...transitions: readonly Transition[]): Promise<readonly Verdict[]>
  get(id: JobId): Promise<StoredJob>
  statusOf(...ids: readonly JobId[]): Promise<readonly (JobStatus | 'gone')[]>
  /** Of `QUEUE`, as `counts` says: queued, or dispatched where a backend hands jobs on by itself. */
  countReady(): Promise<number>
  batch(fields?: Partial<NewBatch>): Promise<BatchId>
  /** Claims one by one until nothing is ready; completes each at once. Answers the order of starts. */
  drain(worker: TestWorker, queues?: readonly string[]): Promise<readonly JobId[]>
}

export interface TestWorker {
  readonly id: WorkerId
  ask(request?: Partial<ClaimRequest>): Promise<ClaimReply>
  claim(limit?: number, queues?: readonly string[]): Promise<readonly ClaimedJob[]>
  /** Fails when nothing is ready. */
  claimOne(queue?: string): Promise<ClaimedJob>
  nextClaimNo(): number
}

export const QUEUE = 'mail'

/** The settings a queue has when nobody configured it. */
export function queueSettings(name: string, change: Partial<QueueSettings> = {}): QueueSettings {
  return {
    name,
    defaultPriority: DEFAULTS.priority,
    defaultAttempts: DEFAULTS.attempts,
    retry: null,
    limits: NO_LIMITS,
    retention: { completedMs: null, failedMs: null, cancelledMs: null },
    lowerLaneShare: DEFAULTS.lowerLaneShare,
    lanes: DEFAULT_LANES,
    ...change,
  }
}

export const NO_LIMITS = { concurrency: null, rate: null, perKeyConcurrency: null, perKeyRate: null } as const

export function unique(key: string, hold: Partial<UniqueHold> = {}): { readonly unique: UniqueHold } {
  return { unique: { key, mode: 'until-finished', windowMs: 60_000, onDuplicate: 'keep', ...hold } }
}

export function after(parent: JobId, onFailure: Dependency['onFailure'] = 'fail'): Dependency {
  return { parent, onFailure }
}

export function createWorld(backend: Backend, clock: TestClock): World {
  const mint = createIdSource({ ...systemClock, nowMs: () => clock.nowMs() })
  const newId = (): JobId => mint() as JobId // minted here, as the client does
  const job = (fields: Partial<NewJob> = {}): NewJob => ({
    id: newId(),
    queue: QUEUE,
    name: 'send-welcome',
    payload: '{"to":"ada@example.com"}',
    timeoutMs: 30_000,
    ...fields,
  })
  const accept: World['accept'] = async (...jobs) =>
    accepted(await backend.jobs.insert(jobs.map((fields) => job(fields))))
  const add: World['add'] = async (...jobs) => {
    const results = await accept(...jobs)
    expect(results.map(({ outcome }) => outcome)).toEqual(results.map(() => 'inserted'))
    return results.map(({ id }) => id)
  }
  const get: World['get'] = async (id) => present((await backend.query.get([id]))[0], `job ${id}`)
  return {
    backend,
    jobs: backend.jobs,
    query: backend.query,
    queues: backend.queues,
    schedules: backend.schedules,
    batches: backend.batches,
    limits: backend.limits,
    workers: backend.workers,
    notes: backend.notes,
    wakeups: backend.wakeups,
    capabilities: backend.capabilities,
    clock,
    newId,
    job,
    accept,
    add,
    get,
    addOne: async (fields = {}) => present((await add(fields))[0], 'the new job'),
    worker: () => createWorker(backend, mint() as WorkerId),
    beat: (id, fields = {}) => backend.workers.beat({ id, running: 0, commandsSeen: 0, ...fields }),
    async kill({ id }) {
      const { beat } = present(
        (await backend.workers.list()).find((worker) => worker.id === id),
        `worker ${id}`,
      )
      expect(await backend.workers.declareDead([{ id, beat }])).toEqual([id])
    },
    apply: (...transitions) => backend.jobs.apply(transitions),
    statusOf: async (...ids) =>
      (await backend.query.get(ids)).map((found) => (found === null ? 'gone' : place(found.status))),
    async countReady() {
      const [found] = await backend.query.counts(QUEUE)
      return (found?.counts.queued ?? 0) + (found?.counts.dispatched ?? 0)
    },
    async batch(fields = {}) {
      const id = mint() as BatchId // minted here, as the client does
      const callbacks = { complete: null, success: null, failure: null }
      await backend.batches.create({ id, name: 'import', meta: null, callbacks, ...fields })
      return fields.id ?? id
    },
    async drain(worker, queues = [QUEUE]) {
      const started: JobId[] = []
      for (let claimed = await worker.claim(1, queues); claimed.length > 0; claimed = await worker.claim(1, queues)) {
        const { id, lease } = claimed[0]!
        started.push(id)
        await backend.jobs.apply([
          { jobId: id, edge: 'complete', guard: { from: ['running'], lease }, to: 'completed', attempt: 'count' },
        ])
      }
      return started
    },
  }
}

async function createWorker(backend: Backend, id: WorkerId): Promise<TestWorker> {
  await backend.workers.register({ id, host: 'localhost', pid: 1, queues: [QUEUE, 'other'], concurrency: 10 })
  let claimNo = 0
  const ask: TestWorker['ask'] = (request = {}) =>
    backend.jobs.claim({ worker: id, claimNo: ++claimNo, queues: [QUEUE], limit: LIMITS.claimBatchMax, ...request })
  const claim: TestWorker['claim'] = async (limit = LIMITS.claimBatchMax, queues = [QUEUE]) => {
    const reply = await ask({ limit, queues })
    expect(reply.refused).toBeUndefined()
    return reply.jobs
  }
  return {
    id,
    ask,
    claim,
    claimOne: async (queue = QUEUE) => present((await claim(1, [queue]))[0], `a ready job in ${queue}`),
    nextClaimNo: () => claimNo + 1,
  }
}

export function accepted(reply: InsertReply): readonly InsertResult[] {
  if (!reply.ok) throw new Error(`the insert was refused: ${JSON.stringify(reply.refusal)}`)
  return reply.results
}

export function present<Value>(value: Value | null | undefined, what: string): Value {
  if (value === null || value === undefined) throw new Error(`expected ${what}, but there is none`)
  return value
}

/** A hybrid hands ready jobs to Redis by itself: for a test both places are "ready". */
export function place(status: JobStatus): JobStatus {
  return status === 'dispatched' ? 'queued' : status
}

/** Resolves as soon as the condition holds; the wait is real time, for stores that ring a little later. */
export async function eventually(holds: () => boolean, what: string, withinMs = 3_000): Promise<void> {
  const untilMs = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > untilMs) throw new Error(`waited ${withinMs} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
