// Two answers of the hybrid that random programs once found wrong.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { decideRemove } from '../../src/core/decide.ts'
import type { JobId, NewJob, WorkerId } from '../../src/core/job.ts'
import { queueSettings } from '../conformance/world.ts'
import type { TestStore } from '../conformance/suite.ts'
import { createModelStore } from './model-store.ts'

const WORKER = '01890000-0000-7000-8000-0000000000ff' as WorkerId
let store: TestStore

beforeEach(async () => {
  store = await createModelStore()
  await store.backend.queues.ensure([queueSettings('one'), queueSettings('two')])
  const worker = { id: WORKER, host: 'h', pid: 1, queues: ['one', 'two'], concurrency: 1 }
  await store.backend.workers.register(worker)
})

afterEach(() => store.close())

function job(no: number, priority: number): NewJob {
  const id = `01890000-0000-7000-8000-00000000000${no}` as JobId
  return { id, queue: 'one', name: 'task', payload: '1', timeoutMs: 1_000, priority, maxAttempts: 1 }
}

test('removing a dispatched job answers as for any job that waits: the request to cancel finds nothing', async () => {
  const { jobs, query } = store.backend
  await jobs.insert([job(1, 10), job(2, 200)])
  // The relay brings both, one per lane; one is claimed.
  const { jobs: claimed } = await jobs.claim({ worker: WORKER, claimNo: 1, queues: ['one'], limit: 1 })
  expect(claimed.map(({ id }) => id)).toEqual([job(1, 10).id])
  const [left] = await query.get([job(2, 200).id])
  expect(left?.status).toBe('dispatched')
  expect(await jobs.apply(decideRemove(job(2, 200).id))).toEqual(['applied', 'missing'])
})

test('a claim that is full names the paused queues it did not come to', async () => {
  const { jobs, queues } = store.backend
  await queues.configure('two', { paused: true })
  await jobs.insert([job(1, 100)])
  const reply = await jobs.claim({ worker: WORKER, claimNo: 1, queues: ['one', 'two'], limit: 1 })
  expect([reply.jobs.length, reply.paused]).toEqual([1, ['two']])
})
