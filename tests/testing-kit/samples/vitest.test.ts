// The blocks of docs/testing.md for vitest, run as they are.
import { expect, test } from 'vitest'
import { createTestMillrace, expectEnqueued, expectNotEnqueued } from '../../../src/testing/index.ts'
import { JOBS, cleanUp, register, sendWelcome } from './app.ts'

test('a new user gets a mail now and tips in three days', async () => {
  const mill = await createTestMillrace({ jobs: JOBS })
  await register(mill, 'ada@example.com')

  expectEnqueued(mill, sendWelcome, { email: 'ada@example.com' }, { queue: 'mail', count: 2 })
  expectEnqueued(mill, sendWelcome, { template: 'tips' }, { delay: '3d' })
  expectNotEnqueued(mill, cleanUp)
})

test('the mails are sent', async () => {
  const mill = await createTestMillrace({ jobs: JOBS })
  await register(mill, 'ada@example.com')

  expect(await mill.drain()).toMatchObject({ completed: 1, failed: 0 })
  await mill.clock.advance('3d')
  expect(await mill.drain()).toMatchObject({ completed: 1 })
})

test('a mail that cannot be delivered is tried three times', async () => {
  const mill = await createTestMillrace({ jobs: [sendWelcome] })
  const { id } = await mill.enqueue(sendWelcome, { email: 'eve@down.example' })

  expect(await mill.drain({ withScheduled: true })).toMatchObject({ retried: 2, failed: 1 })
  const letter = await mill.deadLetters.get(id)
  expect(letter?.lastError?.message).toBe('no route to eve@down.example')
})

test('the last attempt fails for good', async () => {
  const mill = await createTestMillrace({ jobs: [sendWelcome] })

  const first = await mill.perform(sendWelcome, { email: 'ada@example.com' })
  expect(first.status).toBe('completed')
  expect(first.result?.to).toBe('ada@example.com')
  expect(first.logs).toEqual([{ level: 'info', message: 'mailed ada@example.com' }])

  const last = await mill.perform(sendWelcome, { email: 'eve@down.example' }, { attempt: 3 })
  expect(last).toMatchObject({ status: 'failed', error: { message: 'no route to eve@down.example' } })
})

test('the cleaning runs every night in Berlin, also when the clocks change', async () => {
  const mill = await createTestMillrace({ jobs: [cleanUp], start: new Date('2030-03-30T12:00:00Z') })
  await mill.schedules.upsert('nightly', { job: cleanUp, cron: '0 4 * * *', timeZone: 'Europe/Berlin' })

  await mill.clock.advance('2d')
  const ticks = expectEnqueued(mill, cleanUp).map(({ schedule }) => schedule?.tick.toISOString())
  expect(ticks).toEqual(['2030-03-31T02:00:00.000Z', '2030-04-01T02:00:00.000Z'])
})

test('inline: enqueue resolves when the work is done', async () => {
  const mill = await createTestMillrace({ jobs: JOBS, mode: 'inline' })
  const handle = await mill.enqueue(sendWelcome, { email: 'ada@example.com' })
  expect(await handle.status()).toBe('completed')

  await expect(mill.enqueue(sendWelcome, { email: 'eve@down.example' })).rejects.toThrow('no route')
})

test('live: a real worker', async () => {
  await using mill = await createTestMillrace({ jobs: JOBS, mode: 'live' })
  await register(mill, 'ada@example.com')

  const job = await mill.waitFor(sendWelcome, 'completed', { timeout: '2s' })
  expect(job.result).toEqual({ to: 'ada@example.com', attempt: 1 })
})
