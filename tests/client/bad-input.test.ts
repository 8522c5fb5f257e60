// Whatever a caller gets wrong is a typed error, and nothing is written.
import { describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { defineJob } from '../../src/client/define-job.ts'
import type { EnqueueOptions } from '../../src/client/enqueue-options.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import type { Client } from '../../src/client/client-types.ts'
import { exponential } from '../../src/core/retry.ts'
import { anything, mail, setup, stored, tick } from './setup.ts'

const UNKNOWN_ID = '019f0000-0000-7000-8000-000000000000'
const cyclic: { self?: unknown } = {}
cyclic.self = cyclic
const deep = Array.from({ length: 100 }).reduce<unknown>((inner) => ({ inner }), null)

// Callers without types pass anything; the casts below stand for them.
const bad = (options: object): EnqueueOptions => options as EnqueueOptions
type Loose = Client

const PAYLOADS: readonly (readonly [string, unknown, ErrorCode])[] = [
  ['too large', { text: 'x'.repeat(300_000) }, 'PAYLOAD_TOO_LARGE'],
  ['cyclic', cyclic, 'PAYLOAD_NOT_JSON'],
  ['too deep', deep, 'PAYLOAD_NOT_JSON'],
  ['a BigInt', { count: 1n }, 'PAYLOAD_NOT_JSON'],
  ['an undefined field', { field: undefined }, 'PAYLOAD_NOT_JSON'],
  ['a __proto__ key', JSON.parse('{"__proto__": {"admin": true}}'), 'PAYLOAD_NOT_JSON'],
  ['NaN', { value: Number.NaN }, 'PAYLOAD_NOT_JSON'],
  ['a Date', { at: new Date(0) }, 'PAYLOAD_NOT_JSON'],
  ['a function', { call: () => 1 }, 'PAYLOAD_NOT_JSON'],
  ['a NUL character', { text: 'a\0b' }, 'PAYLOAD_NOT_JSON'],
]

const OPTIONS: readonly (readonly [string, object, ErrorCode])[] = [
  ['an unknown option', { prioritty: 1 }, 'INVALID_OPTION'],
  ['options that are no object', [], 'INVALID_OPTION'],
  ['priority NaN', { priority: Number.NaN }, 'INVALID_PRIORITY'],
  ['a fractional priority', { priority: 1.5 }, 'INVALID_PRIORITY'],
  ['a huge priority', { priority: 1e9 }, 'INVALID_PRIORITY'],
  ['a negative priority', { priority: -1 }, 'INVALID_PRIORITY'],
  ['an unknown priority word', { priority: 'urgent' }, 'INVALID_PRIORITY'],
  ['a negative delay', { delay: -1 }, 'INVALID_DURATION'],
  ['an absurd delay', { delay: '4000d' }, 'INVALID_DURATION'],
  ['a bad duration', { delay: '5 minutes' }, 'INVALID_DURATION'],
  ['a delay NaN', { delay: Number.NaN }, 'INVALID_DURATION'],
  ['delay and runAt', { delay: '1s', runAt: 0 }, 'INVALID_OPTION'],
  ['runAt NaN', { runAt: new Date(Number.NaN) }, 'INVALID_OPTION'],
  ['runAt far ahead', { runAt: new Date('2099-01-01') }, 'INVALID_OPTION'],
  ['runAt as text', { runAt: '2030-01-01' }, 'INVALID_OPTION'],
  ['no attempts', { attempts: 0 }, 'INVALID_OPTION'],
  ['too many attempts', { attempts: 1e6 }, 'INVALID_OPTION'],
  ['a timeout of zero', { timeout: 0 }, 'INVALID_DURATION'],
  ['an endless timeout', { timeout: '30d' }, 'INVALID_DURATION'],
  ['an empty tag', { tags: [''] }, 'INVALID_KEY'],
  ['too many tags', { tags: Array.from({ length: 21 }, (_, index) => `t${index}`) }, 'INVALID_OPTION'],
  ['tags that are no list', { tags: 'a' }, 'INVALID_OPTION'],
  ['meta that is no object', { meta: 'a' }, 'INVALID_OPTION'],
  ['large meta', { meta: { text: 'x'.repeat(5_000) } }, 'PAYLOAD_TOO_LARGE'],
  ['an empty unique key', { unique: '' }, 'INVALID_KEY'],
  ['a unique key with control characters', { unique: 'a\nb' }, 'INVALID_KEY'],
  ['an unknown unique mode', { unique: { key: 'a', mode: 'forever' } }, 'INVALID_OPTION'],
  ['a window without for-a-time', { unique: { key: 'a', mode: 'until-started', window: '1h' } }, 'INVALID_OPTION'],
  ['an unknown unique option', { unique: { key: 'a', windw: '1h' } }, 'INVALID_OPTION'],
  ['unique true', { unique: true }, 'INVALID_OPTION'],
  ['a long group', { group: 'g'.repeat(201) }, 'INVALID_KEY'],
  ['a bad limit key', { limitKey: 5 }, 'INVALID_KEY'],
  ['a batch that is no id', { batch: 'b1' }, 'INVALID_OPTION'],
  ['a batch that does not exist', { batch: UNKNOWN_ID }, 'BATCH_NOT_FOUND'],
  ['a parent that is no id', { after: 'a' }, 'INVALID_OPTION'],
  ['a parent that does not exist', { after: UNKNOWN_ID }, 'DEPENDENCY_NOT_FOUND'],
  ['too many parents', { after: Array.from({ length: 1_001 }, () => UNKNOWN_ID) }, 'INVALID_OPTION'],
  ['an unknown parent policy', { after: UNKNOWN_ID, onParentFailure: 'ignore' }, 'INVALID_OPTION'],
  ['an id that is no UUID', { id: '42' }, 'INVALID_OPTION'],
]

describe('a bad enqueue is refused with its code and writes nothing', () => {
  test.each(PAYLOADS)('payload: %s', async (_, input, code) => {
    const { mill, backend } = setup()
    await expect(mill.enqueue(anything, input)).rejects.toMatchObject({ code })
    await expect(mill.enqueueMany([[tick], [anything, input]])).rejects.toMatchObject({ code, details: { index: 1 } })
    expect(await stored(backend)).toBe(0)
  })

  test.each(OPTIONS)('options: %s', async (_, options, code) => {
    const { mill, backend } = setup()
    await expect(mill.enqueue(tick, undefined, bad(options))).rejects.toMatchObject({ code })
    await expect(mill.enqueueMany([[tick], [tick, undefined, bad(options)]])).rejects.toMatchObject({ code })
    expect(await stored(backend)).toBe(0)
  })

  test('an input that does not fit the schema names the fields', async () => {
    const { mill, backend } = setup()
    const input = { to: 5 } as unknown as { to: string }
    const issues = [{ path: 'to', message: expect.any(String) as unknown }]
    await expect(mill.enqueue(mail, input)).rejects.toMatchObject({ code: 'INVALID_PAYLOAD', details: { issues } })
    expect(await stored(backend)).toBe(0)
  })

  test('an unknown job name offers near names', async () => {
    const { mill } = setup()
    const loose: Loose = mill as unknown as Loose
    await expect(loose.enqueue('send-mial', {})).rejects.toMatchObject({
      code: 'UNKNOWN_JOB',
      details: { near: ['send-mail'] },
    })
    const stranger = defineJob({ name: 'stranger', run: () => 1 })
    await expect(mill.enqueue(stranger)).rejects.toMatchObject({ code: 'UNKNOWN_JOB' })
    await expect(loose.enqueue('__proto__', {})).rejects.toMatchObject({ code: 'UNKNOWN_JOB' })
    await expect(loose.enqueue(undefined as unknown as string, {})).rejects.toMatchObject({ code: 'UNKNOWN_JOB' })
  })

  test('a misspelt option is told its likely spelling', async () => {
    const { mill } = setup()
    await expect(mill.enqueue(tick, undefined, bad({ prioritty: 1 }))).rejects.toThrow('did you mean priority?')
  })

  test('more than 10 000 jobs in one call', async () => {
    const { mill, backend } = setup()
    const lines = Array.from({ length: 10_001 }, () => [tick] as const)
    await expect(mill.enqueueMany(lines)).rejects.toMatchObject({ code: 'BULK_TOO_LARGE' })
    expect(await stored(backend)).toBe(0)
  })

  test('two jobs of one call with the same id', async () => {
    const { mill, backend } = setup()
    const line = [tick, undefined, { id: UNKNOWN_ID }] as const
    await expect(mill.enqueueMany([line, line])).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await stored(backend)).toBe(0)
  })

  test('a secret is refused when the guard refuses', async () => {
    const { mill, backend } = setup({ secrets: { mode: 'refuse' } })
    await expect(mill.enqueue(anything, { apiKey: 'abc' })).rejects.toMatchObject({ code: 'PAYLOAD_SECRET' })
    expect(await stored(backend)).toBe(0)
  })
})

describe('a flow', () => {
  test('that contains itself is a circle', async () => {
    const { mill, backend } = setup()
    const loose: Loose = mill as unknown as Loose
    const node = { job: tick, children: [] as unknown[] }
    node.children.push({ job: anything, input: 1, children: [node] })
    await expect(loose.flow(node as never)).rejects.toMatchObject({ code: 'DEPENDENCY_CYCLE' })
    expect(await stored(backend)).toBe(0)
  })

  test('whose ids depend on each other is a circle', async () => {
    const { mill, backend } = setup()
    const [a, b] = [UNKNOWN_ID, UNKNOWN_ID.replace('019f', '01af')]
    const lines = [
      [tick, undefined, { id: a, after: b }],
      [tick, undefined, { id: b, after: a }],
    ] as const
    await expect(mill.enqueueMany(lines)).rejects.toMatchObject({ code: 'DEPENDENCY_CYCLE' })
    await expect(mill.enqueueMany([[tick, undefined, { id: a, after: a }]])).rejects.toMatchObject({
      code: 'DEPENDENCY_CYCLE',
    })
    expect(await stored(backend)).toBe(0)
  })

  test('with an unknown node option', async () => {
    const { mill } = setup()
    await expect((mill as unknown as Loose).flow({ job: tick, kids: [] } as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })
})

const SCHEDULES: readonly (readonly [string, string, object, ErrorCode])[] = [
  ['a bad cron', 'nightly', { job: tick, cron: '61 * * * *' }, 'INVALID_CRON'],
  ['a cron that never fires', 'nightly', { job: tick, cron: '0 0 31 2 *' }, 'INVALID_CRON'],
  ['a bad time zone', 'nightly', { job: tick, cron: '0 3 * * *', timeZone: 'Mars/Olympus' }, 'INVALID_TIME_ZONE'],
  ['neither cron nor every', 'nightly', { job: tick }, 'INVALID_OPTION'],
  ['both cron and every', 'nightly', { job: tick, cron: '0 3 * * *', every: '1h' }, 'INVALID_OPTION'],
  ['too short an interval', 'nightly', { job: tick, every: 10 }, 'INVALID_DURATION'],
  ['a bad name', 'night ly', { job: tick, every: '1h' }, 'INVALID_NAME'],
  ['an unknown job', 'nightly', { job: 'nobody', every: '1h' }, 'UNKNOWN_JOB'],
  ['a bad input', 'nightly', { job: mail, input: {}, every: '1h' }, 'INVALID_PAYLOAD'],
  ['an unknown option', 'nightly', { job: tick, evry: '1h' }, 'INVALID_OPTION'],
  ['a bad misfire', 'nightly', { job: tick, every: '1h', misfire: 'later' }, 'INVALID_OPTION'],
  ['a bad overlap', 'nightly', { job: tick, every: '1h', overlap: 'queue' }, 'INVALID_OPTION'],
]

test.each(SCHEDULES)('a schedule with %s is refused and not stored', async (_, name, options, code) => {
  const { mill } = setup()
  await expect(mill.schedules.upsert(name, options as never)).rejects.toMatchObject({ code })
  expect(await mill.schedules.list()).toEqual([])
})

const QUEUES: readonly (readonly [string, string, object, ErrorCode])[] = [
  ['a bad name', 'a b', {}, 'INVALID_NAME'],
  ['an unknown option', 'mail', { concurency: 1 }, 'INVALID_OPTION'],
  ['no concurrency', 'mail', { concurrency: 0 }, 'INVALID_OPTION'],
  ['a bad rate', 'mail', { rate: { limit: 0, per: '1s' } }, 'INVALID_OPTION'],
  ['a bad rate period', 'mail', { rate: { limit: 1, per: 'soon' } }, 'INVALID_DURATION'],
  ['an unknown perKey option', 'mail', { perKey: { rat: 1 } }, 'INVALID_OPTION'],
  ['a bad retention', 'mail', { retention: { failed: 'x' } }, 'INVALID_DURATION'],
  ['bad lanes', 'mail', { lanes: [100, 50] }, 'INVALID_OPTION'],
  ['a function as retry', 'mail', { retry: { kind: 'custom' } }, 'INVALID_OPTION'],
]

test.each(QUEUES)('a queue configured with %s is refused and not stored', async (_, name, options, code) => {
  const { mill } = setup()
  await expect(mill.queues.configure(name, options)).rejects.toMatchObject({ code })
  expect(await mill.queues.list()).toEqual([])
})

const DEFINITIONS: readonly (readonly [string, object, ErrorCode])[] = [
  ['a bad name', { name: 'a b' }, 'INVALID_NAME'],
  ['a bad queue', { queue: '' }, 'INVALID_NAME'],
  ['an unknown option', { timout: 1 }, 'INVALID_OPTION'],
  ['no handler', { run: 'x' }, 'INVALID_OPTION'],
  ['a schema that is none', { input: { parse: () => 1 } }, 'INVALID_OPTION'],
  ['a bad retry', { retry: { attempts: 3 } }, 'INVALID_OPTION'],
  ['bad attempts', { attempts: 1.5 }, 'INVALID_OPTION'],
  ['a bad timeout', { timeout: 'x' }, 'INVALID_DURATION'],
  ['a bad priority', { priority: 99_999 }, 'INVALID_PRIORITY'],
  ['a bad unique', { unique: 'yes' }, 'INVALID_OPTION'],
  ['a bad unique.by', { unique: { by: 'id' } }, 'INVALID_OPTION'],
  ['bad tags', { tags: [5] }, 'INVALID_KEY'],
  ['a group that is no function', { group: 'g' }, 'INVALID_OPTION'],
  ['bad unknownErrors', { unknownErrors: 'ignore' }, 'INVALID_OPTION'],
]

test.each(DEFINITIONS)('a job defined with %s is refused', (_, options, code) => {
  const define = (): unknown => defineJob({ name: 'a', run: () => 1, ...options } as never)
  expect(define).toThrow(expect.objectContaining({ code }) as Error)
})

test('two definitions with one name are refused, the same one twice is not', () => {
  const twin = defineJob({ name: 'tick', run: () => 1 })
  expect(() => setup({ jobs: [tick, twin] })).toThrow(expect.objectContaining({ code: 'DUPLICATE_JOB' }) as Error)
  expect(() => setup({ jobs: [tick, tick] })).not.toThrow()
})

test('a job, a queue or a call that names an unknown connection is refused', () => {
  const elsewhere = defineJob({ name: 'elsewhere', connection: 'eu', run: () => 1 })
  const code = 'CONNECTION_NOT_FOUND'
  expect(() => setup({ jobs: [elsewhere] })).toThrow(expect.objectContaining({ code }) as Error)
  expect(() => setup({ queues: { mail: { connection: 'eu' } } })).toThrow(expect.objectContaining({ code }) as Error)
  const { runtime } = setup()
  expect(() => createClient({ jobs: [], connections: {}, runtime })).toThrow(expect.objectContaining({ code }) as Error)
})

test('a declared queue with a mistake is refused at once', () => {
  const queues = { mail: { attempts: 0 } }
  expect(() => setup({ queues })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }) as Error)
})

test('attempts alone keep the default policy, beside a policy they replace its number', () => {
  expect(defineJob({ name: 'a', attempts: 7, run: () => 1 }).retry).toEqual(exponential({ attempts: 7 }))
  const both = defineJob({ name: 'a', attempts: 7, retry: exponential({ attempts: 2, base: '9s' }), run: () => 1 })
  expect(both.retry).toEqual(exponential({ attempts: 7, base: '9s' }))
})
