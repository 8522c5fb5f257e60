// The block of docs/testing.md for the runner of Node; docs.test.ts starts it in a process of its own.
/* oxlint-disable typescript/no-floating-promises -- the runner waits for what test() answers */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completed, createTestMillrace, deadLetters, expectEnqueued } from '../../../src/testing/index.ts'
import { JOBS, register, sendWelcome } from './app.ts'

test('a new user gets a mail', async () => {
  const mill = await createTestMillrace({ jobs: JOBS })
  await register(mill, 'ada@example.com')
  expectEnqueued(mill, sendWelcome, { email: 'ada@example.com' }, { count: 2 })

  const { completed: sent } = await mill.drain({ withScheduled: true })
  assert.equal(sent, 2)
  assert.deepEqual(
    completed(mill, sendWelcome).map(({ result }) => result?.to),
    ['ada@example.com', 'ada@example.com'],
  )
  assert.equal(deadLetters(mill).length, 0)
})
