// Mistakes beside the enqueue itself: each is told by a typed error that names it, none by a TypeError from
// somewhere inside, and none is silently taken for something else.
import { describe, expect, test } from 'vitest'
import { memory } from '../../src/backends/memory/backend.ts'
import type { Client } from '../../src/client/client-types.ts'
import { createClient } from '../../src/client/client.ts'
import type { ClientOptions } from '../../src/client/client.ts'
import type { AnyJob } from '../../src/core/definition.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { setup, stored, tick } from './setup.ts'

const ID = '019f0000-0000-7000-8000-000000000000'
const refusal = (code: ErrorCode, text: string) => ({ code, message: expect.stringContaining(text) as string })

const CLIENTS: readonly (readonly [string, object, ErrorCode, string])[] = [
  ['no jobs', { jobs: undefined }, 'INVALID_OPTION', 'jobs is undefined, but must be an array of jobs'],
  ['jobs by name', { jobs: { tick } }, 'INVALID_OPTION', 'jobs is an object'],
  ['a job that is null', { jobs: [tick, null] }, 'INVALID_OPTION', 'jobs[1] is null, but must be a job made by define'],
  ['a job made by hand', { jobs: [{ name: 'a' }] }, 'INVALID_OPTION', 'jobs[0] is an object'],
  ['no connections', { connections: undefined }, 'INVALID_OPTION', 'connections is undefined'],
  ['a connection that is null', { connections: { default: null } }, 'INVALID_OPTION', 'connections.default is null'],
  ['the maker of a backend', { connections: { default: memory } }, 'INVALID_OPTION', 'such as memory() makes'],
  ['an address', { connections: { default: 'redis://' } }, 'INVALID_OPTION', 'connections.default is "redis://"'],
  [
    'half a backend',
    { connections: { default: { start() {} } } },
    'INVALID_OPTION',
    'connections.default is an object',
  ],
  ['a list of queues', { queues: ['mail'] }, 'INVALID_OPTION', 'queues is an array'],
  ['a queue that is null', { queues: { mail: null } }, 'INVALID_OPTION', 'queues.mail is null'],
  ['a misspelt allow', { secrets: { mode: 'warn', alow: ['token'] } }, 'INVALID_OPTION', 'did you mean allow?'],
  ['one allowed field', { secrets: { mode: 'warn', allow: 'token' } }, 'INVALID_OPTION', 'secrets.allow is "token"'],
  ['an unknown mode', { secrets: { mode: 'on' } }, 'INVALID_OPTION', 'secrets.mode is "on"'],
]

test.each(CLIENTS)('a client made with %s is refused', (_, options, code, text) => {
  const { runtime, backend } = setup()
  const usual = { jobs: [tick], connections: { default: backend }, runtime }
  const create = () => createClient({ ...usual, ...options } as ClientOptions<readonly AnyJob[]>)
  expect(create).toThrow(expect.objectContaining(refusal(code, text)) as Error)
})

type Call = (mill: Client) => Promise<unknown>
// Callers without types pass anything.
const wrong = (value: unknown): never => value as never

const CALLS: readonly (readonly [string, Call, ErrorCode, string])[] = [
  ['addMany with text', async (mill) => (await mill.batch()).addMany(wrong('x')), 'INVALID_OPTION', 'addMany() is "x"'],
  [
    'addMany with a line that is none',
    async (mill) => (await mill.batch()).addMany(wrong([[tick], 'tick'])),
    'INVALID_OPTION',
    'job 1 of this call: a line of a bulk call is "tick"',
  ],
  [
    'add with another batch',
    async (mill) => (await mill.batch()).add(tick, undefined, { batch: ID }),
    'INVALID_OPTION',
    'must be left out: the job joins the batch that it is added to',
  ],
  [
    'addMany with another batch',
    async (mill) => (await mill.batch()).addMany([[tick, undefined, { batch: await mill.batch() }]]),
    'INVALID_OPTION',
    'batch is an object, but must be left out',
  ],
  ['flow without a tree', (mill) => mill.flow(wrong(undefined)), 'INVALID_OPTION', 'a flow node must be an object'],
  [
    'flow with a hole in it',
    (mill) => mill.flow(wrong({ job: tick, children: [{ job: tick }, undefined, { job: tick }] })),
    'INVALID_OPTION',
    'a flow node must be an object',
  ],
  ['jobs.list with null', (mill) => mill.jobs.list(wrong(null)), 'INVALID_OPTION', 'job filter must be an object'],
  ['jobs.counts', (mill) => mill.jobs.counts('a b'), 'INVALID_NAME', '"a b" cannot be the name of a queue'],
  ['jobs.remove', (mill) => mill.jobs.remove(ID, wrong({ actr: 'me' })), 'INVALID_OPTION', 'did you mean actor?'],
  [
    'jobs.remove by a number',
    (mill) => mill.jobs.remove(ID, wrong({ actor: 5 })),
    'INVALID_KEY',
    'cannot be a value of actor',
  ],
  [
    'jobs.cancel by a number',
    (mill) => mill.jobs.cancel(ID, wrong({ actor: 5 })),
    'INVALID_KEY',
    'cannot be a value of actor',
  ],
  ['a reason that is no text', (mill) => mill.jobs.cancel(ID, wrong({ reason: {} })), 'INVALID_OPTION', 'reason is an'],
  [
    'a long reason',
    (mill) => mill.jobs.cancel(ID, { reason: 'x'.repeat(1_001) }),
    'INVALID_OPTION',
    'text of at most 1000 characters',
  ],
  [
    'a reason of a handle',
    async (mill) => (await mill.enqueue(tick)).cancel(wrong(5)),
    'INVALID_OPTION',
    'reason is 5, but must be text',
  ],
  [
    'deadLetters.list',
    (mill) => mill.deadLetters.list(wrong({ oldrThan: '1d' })),
    'INVALID_OPTION',
    'dead letter filter has no option "oldrThan": did you mean olderThan?',
  ],
  [
    'deadLetters.list with a status',
    (mill) => mill.deadLetters.list(wrong({ status: 'ready' })),
    'INVALID_OPTION',
    'dead letter filter has no option "status"',
  ],
  [
    'replayMany without a filter',
    (mill) => mill.deadLetters.replayMany(wrong(undefined)),
    'INVALID_OPTION',
    'dead letter filter must be an object of options, not undefined',
  ],
  ['replay', (mill) => mill.deadLetters.replay(ID, wrong({ actr: 'me' })), 'INVALID_OPTION', 'did you mean actor?'],
  [
    'an unknown connection',
    (mill) => mill.jobs.list({ connection: wrong(5n) }),
    'CONNECTION_NOT_FOUND',
    'connection 5',
  ],
  [
    'an object as a job',
    (mill) => mill.enqueue(wrong({ name: 'tick' }), wrong(1)),
    'UNKNOWN_JOB',
    'made by defineJob()',
  ],
  ['queues.pause', (mill) => mill.queues.pause('typo'), 'QUEUE_NOT_FOUND', 'there is no queue typo'],
  ['queues.resume', (mill) => mill.queues.resume('typo'), 'QUEUE_NOT_FOUND', 'there is no queue typo'],
  ['a rate that is none', (mill) => mill.queues.configure('ticks', { rate: wrong(0) }), 'INVALID_OPTION', 'not 0'],
]

test.each(CALLS)('%s is refused', async (_, call, code, text) => {
  const { mill } = setup()
  await expect(call(mill as unknown as Client)).rejects.toMatchObject(refusal(code, text))
})

test('a batch that is named twice is still one batch', async () => {
  const { mill, backend } = setup()
  const batch = await mill.batch()
  await batch.add(tick, undefined, { batch })
  await batch.addMany([[tick, undefined, { batch: batch.id }]])
  expect(await batch.progress()).toMatchObject({ total: 2 })
  expect(await stored(backend)).toBe(2)
})

describe('pausing', () => {
  test('a queue of a job that was never enqueued keeps what was declared', async () => {
    const { mill } = setup({ queues: { ticks: { attempts: 7 }, declared: { priority: 5 } } })
    expect(await mill.queues.pause('ticks')).toMatchObject({ paused: true, attempts: 7 })
    expect(await mill.queues.pause('declared')).toMatchObject({ paused: true, priority: 5 })
    expect(await mill.queues.configure('mail', { attempts: 2 })).toMatchObject({ attempts: 2, paused: false })
  })

  test('a queue that only has a record is fine', async () => {
    const { mill } = setup()
    await mill.queues.configure('other', { attempts: 2 })
    expect(await mill.queues.pause('other')).toMatchObject({ paused: true, attempts: 2 })
    expect(await mill.queues.resume('other')).toMatchObject({ paused: false, attempts: 2 })
  })
})
