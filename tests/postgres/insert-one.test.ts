// A single job takes a shorter way into the database than one of many; what arrives must be the same.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postgres } from '../../src/backends/postgres/backend.ts'
import type { JobId, NewJob, StoredJob } from '../../src/core/job.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { FreshDatabase } from '../support/postgres-server.ts'

const { newId } = createRuntime()
let database: FreshDatabase
let backend: Backend

beforeAll(async () => {
  database = await freshDatabase(await sharedPostgres(18))
  backend = postgres({ url: database.url })
  await backend.start()
})

afterAll(async () => {
  await backend.stop()
  await database.drop()
})

const HOUR_MS = 3_600_000
const atMs = Math.floor(Date.now() / 1_000) * 1_000

test.each<[string, Partial<NewJob>]>([
  ['nothing but what it must have', {}],
  ['a priority and attempts', { priority: 7, maxAttempts: 9 }],
  ['a delay', { delayMs: HOUR_MS }],
  ['no delay', { delayMs: 0 }],
  ['a time to come', { runAtMs: atMs + HOUR_MS }],
  ['a time that has passed', { runAtMs: atMs - HOUR_MS }],
  ['a time and a longer delay', { runAtMs: atMs + 1_000, delayMs: HOUR_MS }],
  ['tags and meta', { tags: ['a', 'b "c" \\ {d},'], meta: '{"trace":"1"}' }],
  ['a payload of its own form', { payload: '{ "b": 1.0,\n "a": [ ] }' }],
])('a job with %s is the same alone and among others', async (_, extra) => {
  const make = (): NewJob => ({
    id: newId() as JobId, // minted here
    queue: newId(), // one that is not there yet
    name: 'noop',
    payload: '{}',
    timeoutMs: 1_234,
    ...extra,
  })
  const [alone, one, two] = [make(), make(), make()]
  expect(await backend.jobs.insert([alone])).toEqual({ ok: true, results: [{ id: alone.id, outcome: 'inserted' }] })
  expect(await backend.jobs.insert([one, two])).toMatchObject({ ok: true })
  expect(await backend.jobs.insert([alone])).toEqual({ ok: true, results: [{ id: alone.id, outcome: 'already' }] })
  const [a, b] = await backend.query.get([alone.id, one.id])
  expect(alike(a!)).toEqual(alike(b!))
})

/** Without what differs from job to job. Times that follow the clock count as so many seconds from now. */
function alike(job: StoredJob) {
  const { enqueuedAtMs, updatedAtMs, runAtMs } = job
  expect(updatedAtMs).toBeGreaterThanOrEqual(enqueuedAtMs)
  const runsIn = Math.round((runAtMs - enqueuedAtMs) / 10_000)
  return { ...job, id: '', queue: '', enqueuedAtMs: 0, updatedAtMs: 0, runAtMs: runsIn }
}
