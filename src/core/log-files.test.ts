import { expect, test } from 'vitest'
import { isLogName, isOverLog } from './log-files.ts'

test.each(['worker.log', 'worker.log.1', 'worker.log.12.gz', 'worker-2026-08-07.log', 'a.b.log.2026-08-07.gz'])(
  'P4 %s is named like a log',
  (name) => expect(isLogName(name)).toBe(true),
)

test.each([
  '.log',
  'catalog',
  'worker.logs',
  'worker.log.bak',
  'worker.log.d',
  '../worker.log',
  'a/worker.log',
  'log',
  '',
])('P4 %j is not', (name) => expect(isLogName(name)).toBe(false))

test('P4 a log goes when nobody has written to it for its period, and only if it is a file', () => {
  const file = { name: 'worker.log', isFile: true, modifiedAtMs: 1_000 }
  expect(isOverLog(file, 2_001, 1_000)).toBe(true)
  expect(isOverLog(file, 2_000, 1_000)).toBe(false)
  expect(isOverLog({ ...file, isFile: false }, 9_999, 1_000)).toBe(false)
  expect(isOverLog({ ...file, name: 'worker.conf' }, 9_999, 1_000)).toBe(false)
})
