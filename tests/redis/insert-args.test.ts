// Plain jobs of one insert as the values of a script: in one text where that is short enough and can be split again.
import { expect, test } from 'vitest'
import { plainArgs } from '../../src/backends/redis/insert-args.ts'
import type { JobId, NewJob } from '../../src/core/job.ts'
import { LIMITS } from '../../src/core/limits.ts'

const IDS = ['00000000-0000-7000-8000-0000000000aa', '00000000-0000-7000-8000-0000000000bb'] as JobId[] // names as given

function jobs(fields: Partial<NewJob> = {}): readonly NewJob[] {
  return IDS.map((id) => ({ id, queue: 'mail', name: 'send', payload: '{}', timeoutMs: 30_000, ...fields }))
}

/** Behind 'plain', the number of sections, and queue, count, ids and header of the only one. */
function contentsOf(insert: readonly NewJob[]): readonly unknown[] {
  return plainArgs(insert).args.slice(6)
}

test('contents travel as one text, a line each', () => {
  expect(contentsOf(jobs())).toEqual([1, '30000 4 0 send{}\n30000 4 0 send{}'])
})

test('a single one, and those with a line break, travel by themselves', () => {
  expect(contentsOf(jobs().slice(0, 1))).toEqual([1, '30000 4 0 send{}'])
  const broken = '30000 4 0 send{\n}'
  expect(contentsOf(jobs({ payload: '{\n}' }))).toEqual([2, broken, broken])
})

test('as many of the largest as fit into one call are no text that Redis refuses', () => {
  const payload = 'x'.repeat(LIMITS.payloadBytesMax)
  const many = Array.from({ length: 50 }, () => jobs({ payload })).flat()
  const contents = contentsOf(many)
  expect(contents).toHaveLength(1 + many.length)
  expect(contents[0]).toBe(many.length)
})

test('jobs of several queues are told apart, each in its place in the call', () => {
  const [first, second] = jobs()
  const third = { ...first!, id: '00000000-0000-7000-8000-0000000000cc' as JobId } // as given
  const { args, positions } = plainArgs([first!, { ...second!, queue: 'bills', priority: 7 }, third])
  // Ids are bytes.
  const sections = args.filter((value) => typeof value !== 'object')
  expect(sections.slice(0, 2)).toEqual(['plain', 2])
  expect(sections.slice(2, 7)).toEqual(['mail', 2, '- -', 1, '30000 4 0 send{}\n30000 4 0 send{}'])
  expect(sections.slice(7)).toEqual(['bills', 1, '7 -', 1, '30000 4 0 send{}'])
  expect(positions).toEqual([0, 2, 1])
})

test('jobs that ask for different things say so, each before its content', () => {
  const [first, second] = jobs()
  const { args } = plainArgs([first!, { ...second!, maxAttempts: 9 }])
  expect(args.slice(5)).toEqual(['', '- -', '30000 4 0 send{}', '- 9', '30000 4 0 send{}'])
})
