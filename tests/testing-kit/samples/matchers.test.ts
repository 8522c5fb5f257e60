// The matchers of docs/testing.md: a setup file and a test.
import { expect } from 'vitest'
import { matchers } from '../../../src/testing/index.ts'
import type { MillraceMatchers } from '../../../src/testing/index.ts'

expect.extend(matchers)

declare module 'vitest' {
  interface Matchers<T> extends MillraceMatchers<T> {}
}

// The test:
import { test } from 'vitest'
import { createTestMillrace } from '../../../src/testing/index.ts'
import { sendWelcome } from './app.ts'

test('matchers', async () => {
  const mill = await createTestMillrace({ jobs: [sendWelcome] })
  await mill.enqueue(sendWelcome, { email: 'ada@example.com' })
  await mill.enqueue(sendWelcome, { email: 'eve@down.example' }, { attempts: 1 })
  await mill.drain()

  expect(mill).toHaveEnqueued(sendWelcome, { email: expect.stringContaining('@') }, { count: 2 })
  expect(mill).toHaveCompleted(sendWelcome, { email: 'ada@example.com' }, { result: { attempt: 1 } })
  expect(mill).toHaveDeadLetter(sendWelcome, { email: 'eve@down.example' }, { error: /no route/ })
  expect(mill).not.toHaveDeadLetter(sendWelcome, { email: 'ada@example.com' })
})
