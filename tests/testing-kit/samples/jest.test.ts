// The block of docs/testing.md for jest. Only its import differs from what jest is given; vitest runs it here.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestMillrace, matchers } from '../../../src/testing/index.ts'
import type { TestMillrace } from '../../../src/testing/index.ts'
import { JOBS, register, sendWelcome } from './app.ts'

expect.extend(matchers)

let mill: TestMillrace<typeof JOBS>
beforeEach(async () => {
  mill = await createTestMillrace({ jobs: JOBS })
})
afterEach(() => mill.stop())

test('a new user gets a mail', async () => {
  await register(mill, 'ada@example.com')
  await mill.drain()
  expect(mill).toHaveCompleted(sendWelcome, { email: 'ada@example.com' }, { count: 1 })
})
