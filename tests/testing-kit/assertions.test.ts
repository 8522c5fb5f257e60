// Assertions and matchers: what passes, and what they say when they do not.
import { AssertionError } from 'node:assert'
import { describe, expect, test } from 'vitest'
import {
  completed,
  createTestMillrace,
  deadLetters,
  enqueued,
  expectEnqueued,
  expectNotEnqueued,
  matchers,
} from '../../src/testing/index.ts'
import type { MillraceMatchers } from '../../src/testing/index.ts'
import { JOBS, charge, part, sendMail, signUp } from './jobs.ts'

declare module 'vitest' {
  interface Matchers<T> extends MillraceMatchers<T> {}
}

expect.extend(matchers)

async function setup() {
  const mill = await createTestMillrace({ jobs: JOBS })
  await mill.enqueue(sendMail, { to: 'ada', tags: ['x', 'y'] }, { priority: 'high', delay: '5m', tags: ['welcome'] })
  await mill.enqueue(sendMail, { to: 'bob' })
  await mill.enqueue(charge, { cents: 5 })
  return mill
}

function messageOf(assertion: () => unknown): string {
  try {
    assertion()
  } catch (error) {
    expect(error).toBeInstanceOf(AssertionError)
    return (error as Error).message
  }
  throw new Error('it passed')
}

describe('expectEnqueued', () => {
  test('O7 a job is found by part of its input and by how it was enqueued', async () => {
    const mill = await setup()
    expectEnqueued(mill, sendMail)
    expectEnqueued(mill, 'send-mail', { to: 'bob' }, { queue: 'mail', count: 1 })
    const [job] = expectEnqueued(
      mill,
      sendMail,
      { tags: ['x', 'y'] },
      { priority: 'high', delay: '5m', tag: 'welcome', status: 'scheduled' },
    )
    expect(job?.payload.to).toBe('ada')
    expectEnqueued(mill, sendMail, { to: expect.stringMatching(/^a/) as string })
    expectEnqueued(mill, sendMail, undefined, { count: 2 })
    expectNotEnqueued(mill, sendMail, { to: 'eve' })
    expectNotEnqueued(mill, signUp)
    expectNotEnqueued(mill, sendMail, { to: 'bob' }, { delay: '5m' })
  })

  test('O7 the delay of a job is the one it was enqueued with, also after it ran', async () => {
    const mill = await setup()
    await mill.drain({ withScheduled: true })
    expectEnqueued(mill, sendMail, { to: 'ada' }, { delay: '5m', status: 'completed' })
    expectEnqueued(mill, charge, {}, { delay: 0, status: 'failed' })
  })

  test('O7 a failure shows what was enqueued and where it differs', async () => {
    const mill = await setup()
    expect(
      messageOf(() => expectEnqueued(mill, sendMail, { to: 'eve', tags: ['x'] }, { queue: 'mail', delay: '1h' })),
    ).toBe(
      [
        'expected a job send-mail to be enqueued with input {"to":"eve","tags":["x"]}, on queue mail, with delay 1h, but only these 2 were:',
        '  1. send-mail {"to":"ada","tags":["x","y"]} (scheduled on mail, priority 50, delay 5m, waits for delay)',
        '       to: expected "eve", got "ada"',
        '       tags: expected ["x"], got ["x","y"]',
        '       delay: expected 1h, got 5m',
        '  2. send-mail {"to":"bob"} (queued on mail, priority 100)',
        '       to: expected "eve", got "bob"',
        '       tags: expected ["x"], got nothing',
        '       delay: expected 1h, got 0ms',
        'Other jobs: 1 × charge.',
      ].join('\n'),
    )
  })

  test('O7 a failure says when there is nothing of the kind, or nothing at all, or too many', async () => {
    const mill = await setup()
    expect(messageOf(() => expectEnqueued(mill, signUp))).toBe(
      'expected a job sign-up to be enqueued, but none of this kind was.\nOther jobs: 2 × send-mail, 1 × charge.',
    )
    expect(messageOf(() => expectEnqueued(mill, sendMail, {}, { count: 3 }))).toContain(
      'expected exactly 3 jobs send-mail to be enqueued with input {}, but 2 of these 2 matched:',
    )
    expect(messageOf(() => expectNotEnqueued(mill, charge, { cents: 5 }))).toBe(
      'expected no charge to be enqueued with input {"cents":5}, but there was:\n  1. charge {"cents":5} (queued on payments, priority 100)',
    )
    const empty = await createTestMillrace({ jobs: JOBS })
    expect(messageOf(() => expectEnqueued(empty, charge))).toBe(
      'expected a job charge to be enqueued, but no job was enqueued at all.',
    )
  })

  test('O7 runners get both sides for their diff', async () => {
    const mill = await setup()
    let thrown: unknown
    try {
      expectEnqueued(mill, charge, { cents: 6 })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ actual: [{ cents: 5 }], expected: [{ cents: 6 }], code: 'ERR_ASSERTION' })
  })

  test('O7 mistakes in an assertion are told, not passed', async () => {
    const mill = await setup()
    // @ts-expect-error -- no such option
    expect(() => expectEnqueued(mill, charge, {}, { queu: 'mail' })).toThrow(/did you mean queue/)
    // @ts-expect-error -- no such field
    expect(() => expectEnqueued(mill, charge, { euros: 5 })).toThrow(AssertionError)
    // @ts-expect-error -- no such job
    expect(() => expectEnqueued(mill, 'chrage')).toThrow('did you mean charge?')
    const unknown = expect.objectContaining({ code: 'UNKNOWN_JOB' }) as Error
    // @ts-expect-error -- no such job: it would never be enqueued
    expect(() => expectNotEnqueued(mill, 'send-mial')).toThrow(unknown)
    // @ts-expect-error -- no such job
    expect(() => enqueued(mill, 'send-mial')).toThrow(unknown)
    expect(() => expect(mill).not.toHaveEnqueued('send-mial')).toThrow('did you mean send-mail?')
    // @ts-expect-error -- not a Millrace of the kit
    expect(() => expectEnqueued({}, charge)).toThrow(/createTestMillrace/)
  })
})

describe('lists', () => {
  test('O7 enqueued, completed and deadLetters list jobs with the types of their kind', async () => {
    const mill = await setup()
    await mill.enqueue(part, { size: -1 })
    await mill.drain()
    expect(enqueued(mill).map(({ name }) => name)).toEqual(['send-mail', 'send-mail', 'charge', 'part'])
    const [mail] = completed(mill, sendMail)
    expect(mail?.result?.sent satisfies string | undefined).toBe('bob')
    expect(completed(mill)).toHaveLength(1)
    expect(deadLetters(mill).map(({ name }) => name)).toEqual(['part'])
    expect(deadLetters(mill, part)[0]?.payload.size).toBe(-1)
  })
})

describe('matchers', () => {
  test('O7 vitest and jest can say it in their own words', async () => {
    const mill = await setup()
    await mill.drain()
    await mill.enqueue(part, { size: -1 })
    await mill.drain()
    expect(mill).toHaveEnqueued(sendMail, { to: 'ada' }, { delay: '5m' })
    expect(mill).not.toHaveEnqueued(sendMail, { to: 'eve' })
    expect(mill).toHaveCompleted(sendMail, { to: 'bob' }, { result: { sent: 'bob' }, count: 1 })
    expect(mill).not.toHaveCompleted(sendMail, { to: 'ada' })
    expect(mill).toHaveDeadLetter(part, { size: -1 }, { error: /smaller than nothing/ })
    expect(mill).not.toHaveDeadLetter(part, undefined, { error: 'TypeError' })
    expect(() => expect(mill).toHaveCompleted(sendMail, { to: 'ada' })).toThrow(
      /expected a job send-mail to have completed with input \{"to":"ada"\}, but only these 2 were:/,
    )
    expect(() => expect(mill).not.toHaveDeadLetter(part)).toThrow(
      /expected no part to be a dead letter, but there was:/,
    )
    expect(() => expect(mill).toHaveEnqueued('tick')).toThrow(/none of this kind was/)
  })
})
