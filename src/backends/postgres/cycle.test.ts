import { describe, expect, test } from 'vitest'
import type { JobId, LeaseNumber } from '../../core/job.ts'
import type { Transition } from '../../core/transition.ts'
import { splitSettle } from './cycle.ts'
import { uuidArray } from './wire.ts'

const id = (last: number): JobId => `0190a000-0000-7000-8000-${String(last).padStart(12, '0')}` as JobId

function completion(job: number, more: Partial<Transition> = {}): Transition {
  const guard = { from: ['running'] as const, lease: job as LeaseNumber }
  return { jobId: id(job), edge: 'complete', guard, to: 'completed', attempt: 'count', ranMs: 1, ...more }
}

describe('what goes the quick way', () => {
  test('are plain completions, in the order of their ids', () => {
    const transitions = [completion(3), completion(1), completion(2, { progress: '1' }), completion(4)]
    expect(splitSettle(transitions)).toMatchObject({ done: [1, 0, 3], rest: [2] })
  })

  test('is no change of a job that is named more than once: those keep the order of the call', () => {
    const transitions = [completion(9), completion(5), completion(9, { edge: 'report' }), completion(1), completion(9)]
    expect(splitSettle(transitions)).toMatchObject({ done: [3, 1], rest: [0, 2, 4] })
  })

  test('is nothing of an empty call', () => {
    expect(splitSettle([])).toMatchObject({ done: [], rest: [] })
  })
})

describe('ids on the wire', () => {
  test('are 16 bytes each with their length before them, upper case or lower', () => {
    const [one, other] = ['0190A0ff-0000-7abc-8000-000000000001', '0190a000-ffff-7000-8000-0000000000fe']
    const text = uuidArray([one, other]).subarray(20).toString('hex')
    expect(text).toBe(`00000010${one.replaceAll('-', '').toLowerCase()}00000010${other.replaceAll('-', '')}`)
  })

  test('of another length would move those behind them, and are refused', () => {
    expect(() => uuidArray([`${id(1)}0`, id(2).slice(1)])).toThrow('an id of 37 characters')
  })
})
