// The line of a claimed job, as millrace.cycle writes it.
import { expect, test } from 'vitest'
import { parseClaimed } from '../../src/backends/postgres/claim-rows.ts'
import type { CycleHead } from '../../src/backends/postgres/claim-rows.ts'

const ID = '01a1f2f9-49a7-702a-9bdc-508f6ca1dd41'
const HEAD: CycleHead = { queues: [[1, 7, 16, 50, 150, false, false]] }
/** Priority 100, one attempt and two crashes in one word. */
const COUNTS = 100 + 65_536 * (1 + 65_536 * 2)

function read(line: string) {
  return parseClaimed([['{}'], [line, 'send', '{"n":1}', null]], HEAD, ['mail'])[0]!.job
}

test('a job that was ready at once does not say its time twice', () => {
  const facts = { id: ID, lease: 5, priority: 100, attemptCount: 1, crashCount: 2, maxAttempts: 3, timeoutMs: 1000 }
  expect(read(`${ID} 5 7 9 ${COUNTS} 3 1000 42`)).toMatchObject({ ...facts, enqueuedAtMs: 42, runAtMs: 42 })
  expect(read(`${ID} 5 7 9 ${COUNTS} 3 1000 42 77`)).toMatchObject({ ...facts, enqueuedAtMs: 42, runAtMs: 77 })
})

test('a line of another version is refused and not read wrongly', () => {
  expect(() => read(`${ID} 5 7 9 100 1 2 3 1000 42 77`)).toThrow('more words')
  expect(() => read(`${ID} 5 7 9 ${COUNTS} 3 1000`)).toThrow('number')
})
