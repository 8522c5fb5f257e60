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

/** The code for programs, the text for people: both are promises. */
const refusal = (code: ErrorCode, text: string) => ({ code, message: expect.stringContaining(text) as string })

const PAYLOADS: readonly (readonly [string, unknown, ErrorCode, string])[] = [
  [
    'too large',
    { text: 'x'.repeat(300_000) },
    'PAYLOAD_TOO_LARGE',
    'payload has 300011 bytes, but at most 262144 are allowed',
  ],
  ['cyclic', cyclic, 'PAYLOAD_NOT_JSON', 'payload.self points back to an object that contains it; break the circle'],
  ['too deep', deep, 'PAYLOAD_NOT_JSON', 'is nested deeper than 64 levels'],
  ['a BigInt', { count: 1n }, 'PAYLOAD_NOT_JSON', 'payload.count is a BigInt'],
  [
    'an undefined field',
    { field: undefined },
    'PAYLOAD_NOT_JSON',
    'payload.field is undefined; leave the field out or use null',
  ],
  [
    'a __proto__ key',
    JSON.parse('{"__proto__": {"admin": true}}'),
    'PAYLOAD_NOT_JSON',
    'payload.__proto__ is a key that could poison prototypes; rename it',
  ],
  ['NaN', { value: Number.NaN }, 'PAYLOAD_NOT_JSON', 'payload.value is NaN'],
  ['a Date', { at: new Date(0) }, 'PAYLOAD_NOT_JSON', 'payload.at is a Date'],
  ['a function', { call: () => 1 }, 'PAYLOAD_NOT_JSON', 'payload.call is a function, which JSON cannot carry'],
  [
    'a NUL character',
    { text: 'a\0b' },
    'PAYLOAD_NOT_JSON',
    'payload.text has a NUL character or half of a surrogate pair',
  ],
]

const OPTIONS: readonly (readonly [string, object, ErrorCode, string])[] = [
  [
    'an unknown option',
    { prioritty: 1 },
    'INVALID_OPTION',
    'enqueue options has no option "prioritty": did you mean priority?',
  ],
  ['options that are no object', [], 'INVALID_OPTION', 'enqueue options must be an object of options, not an array'],
  ['priority NaN', { priority: Number.NaN }, 'INVALID_PRIORITY', 'priority is NaN'],
  ['a BigInt as priority', { priority: 5n }, 'INVALID_PRIORITY', 'priority is 5: use a whole number'],
  ['a cyclic priority', { priority: cyclic }, 'INVALID_PRIORITY', 'priority is an object'],
  ['a fractional priority', { priority: 1.5 }, 'INVALID_PRIORITY', 'priority is 1.5'],
  ['a huge priority', { priority: 1e9 }, 'INVALID_PRIORITY', 'priority is 1000000000'],
  ['a negative priority', { priority: -1 }, 'INVALID_PRIORITY', 'priority is -1'],
  ['an unknown priority word', { priority: 'urgent' }, 'INVALID_PRIORITY', 'priority is "urgent"'],
  ['a negative delay', { delay: -1 }, 'INVALID_DURATION', 'delay is -1'],
  ['an absurd delay', { delay: '4000d' }, 'INVALID_DURATION', 'delay is "4000d"'],
  ['a bad duration', { delay: '5 minutes' }, 'INVALID_DURATION', 'delay is "5 minutes"'],
  ['a delay NaN', { delay: Number.NaN }, 'INVALID_DURATION', 'delay is NaN'],
  [
    'delay and runAt',
    { delay: '1s', runAt: 0 },
    'INVALID_OPTION',
    'delay and runAt exclude each other: pass one of them',
  ],
  [
    'runAt NaN',
    { runAt: new Date(Number.NaN) },
    'INVALID_OPTION',
    'runAt is NaN, but must be a valid Date or milliseconds since 1970',
  ],
  [
    'runAt far ahead',
    { runAt: new Date('2099-01-01') },
    'INVALID_OPTION',
    'runAt is 4070908800000, but must be a valid Date or milliseconds since 1970',
  ],
  [
    'runAt as text',
    { runAt: '2030-01-01' },
    'INVALID_OPTION',
    'runAt is "2030-01-01", but must be a valid Date or milliseconds since 1970',
  ],
  ['no attempts', { attempts: 0 }, 'INVALID_OPTION', 'attempts is 0, but must be a whole number from 1 to 1000'],
  [
    'too many attempts',
    { attempts: 1e6 },
    'INVALID_OPTION',
    'attempts is 1000000, but must be a whole number from 1 to 1000',
  ],
  ['a timeout of zero', { timeout: 0 }, 'INVALID_DURATION', 'timeout is 0'],
  ['an endless timeout', { timeout: '30d' }, 'INVALID_DURATION', 'timeout is "30d"'],
  ['an empty tag', { tags: [''] }, 'INVALID_KEY', '"" cannot be a tag'],
  [
    'too many tags',
    { tags: Array.from({ length: 21 }, (_, index) => `t${index}`) },
    'INVALID_OPTION',
    'tags is 21, but must be at most 20 tags',
  ],
  ['tags that are no list', { tags: 'a' }, 'INVALID_OPTION', 'tags is "a", but must be an array of strings'],
  ['meta that is no object', { meta: 'a' }, 'INVALID_OPTION', 'meta is "a", but must be an object of JSON values'],
  [
    'large meta',
    { meta: { text: 'x'.repeat(5_000) } },
    'PAYLOAD_TOO_LARGE',
    'meta has 5011 bytes, but at most 4096 are allowed',
  ],
  ['an empty unique key', { unique: '' }, 'INVALID_KEY', '"" cannot be a unique key'],
  ['a unique key with control characters', { unique: 'a\nb' }, 'INVALID_KEY', '"a\\nb" cannot be a unique key'],
  [
    'an unknown unique mode',
    { unique: { key: 'a', mode: 'forever' } },
    'INVALID_OPTION',
    'unique.mode is "forever", but must be until-started, until-finished, for-a-time',
  ],
  [
    'a window without for-a-time',
    { unique: { key: 'a', mode: 'until-started', window: '1h' } },
    'INVALID_OPTION',
    'unique.window is "1h", but must be left out with the mode until-started: only for-a-time has a window',
  ],
  [
    'an unknown unique option',
    { unique: { key: 'a', windw: '1h' } },
    'INVALID_OPTION',
    'unique has no option "windw": did you mean window?',
  ],
  [
    'unique true',
    { unique: true },
    'INVALID_OPTION',
    'unique is true, but must be a key, false or { key, mode, window, onDuplicate }',
  ],
  ['a long group', { group: 'g'.repeat(201) }, 'INVALID_KEY', '(201 characters) cannot be a group'],
  ['a bad limit key', { limitKey: 5 }, 'INVALID_KEY', '5 cannot be a limitKey'],
  ['a batch that is no id', { batch: 'b1' }, 'INVALID_OPTION', 'batch is "b1", but must be a UUID'],
  ['a batch that does not exist', { batch: UNKNOWN_ID }, 'BATCH_NOT_FOUND', 'there is no batch 019f0000'],
  ['a parent that is no id', { after: 'a' }, 'INVALID_OPTION', 'after is "a", but must be a UUID'],
  [
    'a parent that does not exist',
    { after: UNKNOWN_ID },
    'DEPENDENCY_NOT_FOUND',
    'which does not exist: enqueue the parent first',
  ],
  [
    'too many parents',
    { after: Array.from({ length: 1_001 }, () => UNKNOWN_ID) },
    'INVALID_OPTION',
    'after is 1001, but must be at most 1000 jobs',
  ],
  [
    'an unknown parent policy',
    { after: UNKNOWN_ID, onParentFailure: 'ignore' },
    'INVALID_OPTION',
    'onParentFailure is "ignore", but must be fail, cancel, continue',
  ],
  ['an id that is no UUID', { id: '42' }, 'INVALID_OPTION', 'id is "42", but must be a UUID'],
]

describe('a bad enqueue is refused with its code and writes nothing', () => {
  test.each(PAYLOADS)('payload: %s', async (_, input, code, text) => {
    const { mill, backend } = setup()
    await expect(mill.enqueue(anything, input)).rejects.toMatchObject(refusal(code, text))
    await expect(mill.enqueueMany([[tick], [anything, input]])).rejects.toMatchObject({
      ...refusal(code, text),
      details: { index: 1 },
    })
    expect(await stored(backend)).toBe(0)
  })

  test.each(OPTIONS)('options: %s', async (_, options, code, text) => {
    const { mill, backend } = setup()
    await expect(mill.enqueue(tick, undefined, bad(options))).rejects.toMatchObject(refusal(code, text))
    await expect(mill.enqueueMany([[tick], [tick, undefined, bad(options)]])).rejects.toMatchObject(refusal(code, text))
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
    await expect(mill.enqueue(tick, undefined, { meta: { userToken: 'abc' } })).rejects.toMatchObject({
      code: 'PAYLOAD_SECRET',
      details: { paths: ['meta.userToken'] },
    })
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

const SCHEDULES: readonly (readonly [string, string, object, ErrorCode, string])[] = [
  [
    'a bad cron',
    'nightly',
    { job: tick, cron: '61 * * * *' },
    'INVALID_CRON',
    '"61 * * * *" cannot be a cron expression',
  ],
  [
    'a cron that never fires',
    'nightly',
    { job: tick, cron: '0 0 31 2 *' },
    'INVALID_CRON',
    '"0 0 31 2 *" cannot be a cron expression: it never fires',
  ],
  [
    'a bad time zone',
    'nightly',
    { job: tick, cron: '0 3 * * *', timeZone: 'Mars/Olympus' },
    'INVALID_TIME_ZONE',
    '"Mars/Olympus" is no time zone known to this runtime',
  ],
  [
    'neither cron nor every',
    'nightly',
    { job: tick },
    'INVALID_OPTION',
    'a schedule needs exactly one of cron and every',
  ],
  [
    'both cron and every',
    'nightly',
    { job: tick, cron: '0 3 * * *', every: '1h' },
    'INVALID_OPTION',
    'a schedule needs exactly one of cron and every',
  ],
  ['too short an interval', 'nightly', { job: tick, every: 10 }, 'INVALID_DURATION', 'every is 10'],
  ['a bad name', 'night ly', { job: tick, every: '1h' }, 'INVALID_NAME', '"night ly" cannot be the name of a schedule'],
  [
    'an unknown job',
    'nightly',
    { job: 'nobody', every: '1h' },
    'UNKNOWN_JOB',
    'no job named "nobody" is registered: pass it in `jobs`, or correct the name',
  ],
  [
    'a bad input',
    'nightly',
    { job: mail, input: {}, every: '1h' },
    'INVALID_PAYLOAD',
    'the input of send-mail does not fit its schema: to: ',
  ],
  [
    'an unknown option',
    'nightly',
    { job: tick, evry: '1h' },
    'INVALID_OPTION',
    'schedule nightly has no option "evry": did you mean every?',
  ],
  [
    'a bad misfire',
    'nightly',
    { job: tick, every: '1h', misfire: 'later' },
    'INVALID_OPTION',
    "misfire is \"later\", but must be 'skip', 'fire-once' or { catchUp: n }",
  ],
  [
    'a bad overlap',
    'nightly',
    { job: tick, every: '1h', overlap: 'queue' },
    'INVALID_OPTION',
    "overlap is \"queue\", but must be 'allow' or 'skip'",
  ],
]

test.each(SCHEDULES)('a schedule with %s is refused and not stored', async (_, name, options, code, text) => {
  const { mill } = setup()
  await expect(mill.schedules.upsert(name, options as never)).rejects.toMatchObject(refusal(code, text))
  expect(await mill.schedules.list()).toEqual([])
})

const QUEUES: readonly (readonly [string, string, object, ErrorCode, string])[] = [
  ['a bad name', 'a b', {}, 'INVALID_NAME', '"a b" cannot be the name of a queue'],
  [
    'an unknown option',
    'mail',
    { concurency: 1 },
    'INVALID_OPTION',
    'queue mail has no option "concurency": did you mean concurrency?',
  ],
  [
    'no concurrency',
    'mail',
    { concurrency: 0 },
    'INVALID_OPTION',
    'concurrency is 0, but must be a whole number from 1 to 10000',
  ],
  [
    'a bad rate',
    'mail',
    { rate: { limit: 0, per: '1s' } },
    'INVALID_OPTION',
    'limit is 0, but must be a whole number from 1 to 1000000',
  ],
  ['a bad rate period', 'mail', { rate: { limit: 1, per: 'soon' } }, 'INVALID_DURATION', 'per is "soon"'],
  [
    'an unknown perKey option',
    'mail',
    { perKey: { rat: 1 } },
    'INVALID_OPTION',
    'perKey has no option "rat": did you mean rate?',
  ],
  ['a bad retention', 'mail', { retention: { failed: 'x' } }, 'INVALID_DURATION', 'retention.failed is "x"'],
  [
    'bad lanes',
    'mail',
    { lanes: [100, 50] },
    'INVALID_OPTION',
    'lanes[1] is 50, but must be a whole number from 101 to 32767',
  ],
  ['a retry without its delay', 'mail', { retry: { kind: 'fixed' } }, 'INVALID_OPTION', 'retry.delayMs is undefined'],
  [
    'a function as retry',
    'mail',
    { retry: { kind: 'custom' } },
    'INVALID_OPTION',
    'retry is an object, but must be made by exponential(), linear() or fixed()',
  ],
]

test.each(QUEUES)('a queue configured with %s is refused and not stored', async (_, name, options, code, text) => {
  const { mill } = setup()
  await expect(mill.queues.configure(name, options)).rejects.toMatchObject(refusal(code, text))
  expect(await mill.queues.list()).toEqual([])
})

const DEFINITIONS: readonly (readonly [string, object, ErrorCode, string])[] = [
  ['a bad name', { name: 'a b' }, 'INVALID_NAME', '"a b" cannot be the name of a job'],
  ['a bad queue', { queue: '' }, 'INVALID_NAME', '"" cannot be the name of a queue'],
  ['an unknown option', { timout: 1 }, 'INVALID_OPTION', 'defineJob() has no option "timout": did you mean timeout?'],
  ['no handler', { run: 'x' }, 'INVALID_OPTION', 'run is "x", but must be a function'],
  [
    'a schema that is none',
    { input: { parse: () => 1 } },
    'INVALID_OPTION',
    'input is an object, but must be a Standard Schema (zod, valibot, arktype ...)',
  ],
  [
    'a bad retry',
    { retry: { attempts: 3 } },
    'INVALID_OPTION',
    'retry is an object, but must be made by exponential(), linear(), fixed() or customRetry()',
  ],
  ['a retry without its delay', { retry: { kind: 'fixed' } }, 'INVALID_OPTION', 'retry.delayMs is undefined'],
  ['bad attempts', { attempts: 1.5 }, 'INVALID_OPTION', 'attempts is 1.5, but must be a whole number from 1 to 1000'],
  ['a bad timeout', { timeout: 'x' }, 'INVALID_DURATION', 'timeout is "x"'],
  ['a bad priority', { priority: 99_999 }, 'INVALID_PRIORITY', 'priority is 99999'],
  [
    'a bad unique',
    { unique: 'yes' },
    'INVALID_OPTION',
    'unique is "yes", but must be true, \'content\' or { by, mode, window, onDuplicate }',
  ],
  [
    'a bad unique.by',
    { unique: { by: 'id' } },
    'INVALID_OPTION',
    'unique.by is "id", but must be \'content\' or a function of the input',
  ],
  ['bad tags', { tags: [5] }, 'INVALID_KEY', '5 cannot be a tag'],
  ['a group that is no function', { group: 'g' }, 'INVALID_OPTION', 'group is "g", but must be a function'],
  [
    'bad unknownErrors',
    { unknownErrors: 'ignore' },
    'INVALID_OPTION',
    "unknownErrors is \"ignore\", but must be 'retry' or 'fail'",
  ],
]

test.each(DEFINITIONS)('a job defined with %s is refused', (_, options, code, text) => {
  const define = (): unknown => defineJob({ name: 'a', run: () => 1, ...options } as never)
  expect(define).toThrow(expect.objectContaining(refusal(code, text)) as Error)
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
