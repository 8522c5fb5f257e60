// Circles in one call are found and spelled out; everything else passes, however deep.
import { expect, test } from 'vitest'
import { checkNoCycle } from './flow.ts'
import type { JobId } from './job.ts'

const job = (name: string, ...parents: readonly string[]) => ({
  id: name as JobId,
  name,
  dependsOn: parents.map((parent) => ({ parent: parent as JobId, onFailure: 'fail' as const })),
})

test('T4 a circle is refused and named', () => {
  const circle = [job('a', 'c'), job('b', 'a'), job('c', 'b'), job('d', 'c')]
  expect(() => checkNoCycle(circle)).toThrow(/circle: (a → c → b → a|b → a → c → b|c → b → a → c)/)
  expect(() => checkNoCycle([job('self', 'self')])).toThrow(expect.objectContaining({ code: 'DEPENDENCY_CYCLE' }))
})

test('T4 diamonds, outside parents and long chains are no circles', () => {
  checkNoCycle([
    job('top'),
    job('left', 'top'),
    job('right', 'top'),
    job('bottom', 'left', 'right'),
    job('x', 'elsewhere'),
  ])
  checkNoCycle(Array.from({ length: 10_000 }, (_, no) => (no === 0 ? job('0') : job(String(no), String(no - 1)))))
})
