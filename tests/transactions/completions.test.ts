// What became of a transaction is asked for until it is known, a few calls at a time, and each answer counts once.
import { expect, test } from 'vitest'
import { MillraceError } from '../../src/core/errors.ts'
import type { ClaimedJob, JobId, LeaseNumber, StoredJob, WorkerId } from '../../src/core/job.ts'
import { DEFAULT_POLICY } from '../../src/core/policy.ts'
import type { Transition, Verdict } from '../../src/core/transition.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { Completions } from '../../src/worker/completions.ts'
import { JobRun } from '../../src/worker/job-run.ts'
import { VirtualClock } from '../features/support.ts'

const BUSY = new MillraceError('STORE_TIMEOUT', 'a lock was not free in time', { retryable: true })

test('D11 while the transaction stays open the question is asked again; its commit is the completion', async () => {
  const { completions, clock, store, verdicts, end } = setup()
  store.apply = () => Promise.reject(BUSY)
  end()
  for (let tries = 0; tries < 20; tries++) await clock.advance(5_000)
  expect(store.asked.length).toBeGreaterThan(10)
  expect(verdicts).toEqual([])
  store.apply = () => Promise.resolve(['stale'])
  store.completedBy = 7
  await clock.advance(5_000)
  expect(verdicts).toEqual(['complete applied'])
  await completions.flushed()
})

test('D11 a question whose first answer was lost is not taken for a commit', async () => {
  const { clock, store, verdicts, end } = setup()
  store.apply = () => Promise.reject(BUSY)
  end()
  await clock.advance(0)
  store.apply = () => Promise.resolve(['already'])
  await clock.advance(5_000)
  expect(verdicts).toEqual(['retry already'])
})

test('D11 a question that is refused although nothing was committed is a lost lease', async () => {
  const { clock, store, verdicts, end } = setup()
  store.apply = () => Promise.resolve(['stale'])
  end()
  await clock.advance(0)
  expect(verdicts).toEqual(['retry stale'])
})

test('D11 a commit that can be read needs no question, and a job that is gone had ended', async () => {
  const { clock, store, verdicts, end } = setup()
  store.completedBy = 7
  end()
  await clock.advance(0)
  store.completedBy = 'gone'
  end()
  await clock.advance(0)
  expect(verdicts).toEqual(['complete applied', 'complete applied'])
  expect(store.asked).toEqual([])
})

test('D11 a store that cannot be read is asked again', async () => {
  const { clock, store, verdicts, end } = setup()
  store.completedBy = 'unreadable'
  end()
  await clock.advance(30_000)
  expect(verdicts).toEqual([])
  store.completedBy = 7
  await clock.advance(5_000)
  expect(verdicts).toEqual(['complete applied'])
})

test('D11 four open transactions at most keep a connection waiting, each alone, and reads go on beside them', async () => {
  const { clock, store, verdicts, end } = setup()
  const answers: ((verdicts: readonly Verdict[]) => void)[] = []
  store.apply = () => new Promise((resolve) => answers.push(resolve))
  for (let count = 0; count < 10; count++) end()
  await clock.advance(0)
  expect(store.asked.map((transitions) => transitions.length)).toEqual([1, 1, 1, 1])
  expect(store.reads).toBe(1)
  store.completedBy = 7
  end()
  await clock.advance(0)
  expect(verdicts).toEqual(['complete applied'])
  store.completedBy = null
  for (let count = 0; count < 10; count++) {
    answers[count]!(['applied'])
    await clock.advance(0)
  }
  expect(verdicts).toHaveLength(11)
  expect(store.asked).toHaveLength(10)
})

function setup() {
  const clock = new VirtualClock()
  const verdicts: string[] = []
  const store = {
    asked: [] as (readonly Transition[])[],
    reads: 0,
    /** The lease that completed every job. */
    completedBy: null as number | 'gone' | 'unreadable' | null,
    apply: (): Promise<readonly Verdict[]> => Promise.resolve(['applied']),
  }
  // Only what is used of the two ports.
  const backend = {
    jobs: {
      apply(transitions: readonly Transition[]) {
        store.asked.push(transitions)
        return store.apply()
      },
    },
    query: {
      async get(ids: readonly JobId[]) {
        store.reads += 1
        if (store.completedBy === 'unreadable') throw BUSY
        return ids.map(() => stored(store.completedBy))
      },
    },
  } as unknown as Pick<Backend, 'jobs' | 'query'>
  const completions = new Completions({
    runtime: createRuntime({ clock, random: () => 0.5 }),
    backend,
    connection: 'default',
    policyOf: () => DEFAULT_POLICY,
    onVerdict: ({ transition }, verdict) => void verdicts.push(`${transition.edge} ${verdict}`),
  })
  const completion: Transition = {
    jobId: claimed().id,
    edge: 'complete',
    guard: { from: ['running'] },
    to: 'completed',
  }
  const end = (): void => {
    const run = new JobRun(claimed(), undefined, 'w' as WorkerId, 0, () => undefined)
    completions.settle(run, completion, { kind: 'done', result: null }, 5)
  }
  return { completions, clock, store, verdicts, end }
}

function stored(completedBy: number | string | null): StoredJob | null {
  if (completedBy === 'gone') return null
  const job = { status: completedBy === null ? 'running' : 'completed', lease: completedBy ?? 7 }
  return job as StoredJob // what is looked at
}

function claimed(): ClaimedJob {
  const job = { id: 'j' as JobId, lease: 7 as LeaseNumber, attemptCount: 0, maxAttempts: 3, crashCount: 0, name: 'n' }
  return job as ClaimedJob // what is looked at
}
