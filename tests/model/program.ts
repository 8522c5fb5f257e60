// What a random program works on: the model, the store, and what the commands remember between each other.
import { expect } from 'vitest'
import type { BatchId, JobId, NewJob, WorkerId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { TestClock } from '../conformance/manual-clock.ts'
import { queueSettings } from '../conformance/world.ts'
import { compare } from './compare.ts'
import { settle } from './settle.ts'
import type { Model, ModelJob, ModelQueue } from './state.ts'

export interface Program {
  readonly model: Model
  readonly workers: { readonly id: WorkerId; alive: boolean; claimNo: number }[]
  /** The last settling call, for the lost reply. */
  last: Transition | null
  readonly schedule: { nextRunMs: number; lastJob: JobId | null }
  lastId: number
}

export interface Store {
  readonly backend: Backend
  readonly clock: TestClock
}

/** `free` has no limits; `tight` has slots for the queue and for each key. */
export const QUEUES = ['free', 'tight'] as const
export const SCHEDULE = 'tick'
const TICK_MS = 60_000
const WORKERS = 2

export async function createProgram({ backend, clock }: Store, exactShare: boolean): Promise<Program> {
  const shares = exactShare ? [0, 3] : [0, 0]
  const queues = QUEUES.map((name, index): ModelQueue => {
    const limits = name === 'tight' ? { concurrency: 3, perKey: 1 } : { concurrency: null, perKey: null }
    return { name, share: shares[index]!, passed: [0, 0, 0], paused: false, ...limits }
  })
  for (const { name, share, concurrency, perKey } of queues) {
    const limits = { concurrency, rate: null, perKeyConcurrency: perKey, perKeyRate: null }
    await backend.queues.ensure([queueSettings(name, { lowerLaneShare: share, limits })])
  }
  const program: Program = {
    model: { nowMs: clock.nowMs(), jobs: [], queues, batches: [], holds: [], lastPlace: 0 },
    workers: [],
    last: null,
    schedule: { nextRunMs: clock.nowMs() + TICK_MS, lastJob: null },
    lastId: 0,
  }
  for (let no = 0; no < WORKERS; no++) await hire(program, backend)
  await backend.schedules.upsert([
    {
      name: SCHEDULE,
      recurrence: { kind: 'every', everyMs: TICK_MS, anchorMs: 0 },
      job: 'task',
      queue: 'free',
      payload: '{}',
      priority: null,
      maxAttempts: null,
      timeoutMs: 1_000,
      tags: [],
      meta: null,
      group: null,
      limitKey: null,
      misfire: 'skip',
      overlap: 'allow',
      enabled: true,
      firstRunMs: program.schedule.nextRunMs,
    },
  ])
  return program
}

export async function hire(program: Program, backend: Backend): Promise<void> {
  const id = mintId(program) as WorkerId
  await backend.workers.register({ id, host: 'h', pid: 1, queues: [...QUEUES], concurrency: 1 })
  program.workers.push({ id, alive: true, claimNo: 0 })
}

/** Counted, so that a program is the same each time it runs. */
export function mintId(program: Program): string {
  return `01890000-0000-7000-8000-${(++program.lastId).toString(16).padStart(12, '0')}`
}

export function newJob(program: Program, fields: Partial<NewJob> = {}): NewJob {
  const id = mintId(program) as JobId
  const body = { queue: 'free', name: 'task', payload: `"${id.slice(-4)}"`, timeoutMs: 1_000 }
  return { id, ...body, priority: 100, maxAttempts: 3, ...fields }
}

export function newBatchId(program: Program): BatchId {
  return mintId(program) as BatchId
}

export function pickFrom<Item>(items: readonly Item[], dice: number): Item | undefined {
  return items[dice % Math.max(items.length, 1)]
}

/** The store orders scheduled jobs by time alone; two at one moment could come in either order. */
export function freshDelay({ model }: Program, delayMs: number, alsoTaken: readonly number[] = []): number {
  const taken = new Set([...model.jobs.map(({ runAtMs }) => runAtMs), ...alsoTaken.map((delay) => model.nowMs + delay)])
  let delay = delayMs
  while (taken.has(model.nowMs + delay)) delay += 1
  return delay
}

export function runningJobs({ model }: Program): readonly ModelJob[] {
  return model.jobs.filter((job) => job.status === 'running')
}

/** Applies to both and compares the verdicts. */
export async function applyBoth(
  { model }: Program,
  { backend }: Store,
  transitions: readonly Transition[],
): Promise<void> {
  const verdicts = await backend.jobs.apply(transitions)
  expect(verdicts).toHaveLength(transitions.length)
  for (const [index, transition] of transitions.entries()) {
    expect(settle(model, transition), `verdict of ${transition.edge}`).toContain(verdicts[index])
  }
}

/** One command: what it does, shown in a failing program by its words. */
export interface Command {
  readonly check: () => boolean
  readonly run: (program: Program, store: Store) => Promise<void>
  readonly toString: () => string
}

export function command(words: string, run: (program: Program, store: Store) => Promise<void>): Command {
  return {
    check: () => true,
    async run(program, store) {
      await run(program, store)
      await compare(program.model, store.backend)
    },
    toString: () => words,
  }
}
