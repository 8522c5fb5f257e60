// What pools and supervisors may be told; everything else is refused before a process starts.
import { describe, expect, test } from 'vitest'
import type { PoolConfig } from '../../src/index.ts'
import { checkSupervise } from '../../src/supervisor/options.ts'
import { checkPools } from '../../src/supervisor/pool-options.ts'

const defaults = { drainMs: 60_000, processesMax: 20 }

describe('options', () => {
  test('P1 without pools there is one for all queues, with the defaults of the specification', () => {
    expect(checkPools(undefined, defaults)).toEqual([
      {
        name: 'default',
        queues: null,
        concurrency: 10,
        min: 1,
        max: 15,
        memoryBytes: 512 * 1024 * 1024,
        timeoutMs: null,
        maxJobs: Infinity,
        maxAgeMs: Infinity,
        drainMs: 60_000,
        unresponsiveMs: 60_000,
        startTimeoutMs: 60_000,
        stableAfterMs: 10_000,
      },
    ])
    expect(checkSupervise()).toEqual({ drainMs: 60_000, processesMax: 20, healthCheckMs: 5_000, secret: undefined })
  })

  test('P1 a pool takes from `work` what it does not say itself', () => {
    const work = { queues: ['a'], concurrency: 3, timeout: '1m' } as const
    const [mail, rest] = checkPools({ mail: { concurrency: 5 }, rest: { queues: ['b'] } }, { ...defaults, ...work })
    expect(mail).toMatchObject({ queues: ['a'], concurrency: 5, timeoutMs: 60_000 })
    expect(rest).toMatchObject({ queues: ['b'], concurrency: 3 })
  })

  test.each<[PoolConfig['processes'], number, number]>([
    [3, 3, 3],
    [0, 0, 0],
    [{ min: 2 }, 2, 15],
    [{ max: 4 }, 1, 4],
    [{ min: 0, max: 1 }, 0, 1],
    [{ min: 18 }, 18, 18],
  ])('P1 processes %o are %d to %d', (processes, min, max) => {
    expect(checkPools({ mail: { processes: processes! } }, defaults)[0]).toMatchObject({ min, max })
  })

  test.each<[string, unknown]>([
    ['pools.mail has no option "process": did you mean processes?', { mail: { process: 3 } }],
    ['pools.mail.processes is 21, but must be a whole number from 0 to 20', { mail: { processes: 21 } }],
    [
      'pools.mail.processes.min is 3, but must be a whole number from 0 to 2',
      { mail: { processes: { min: 3, max: 2 } } },
    ],
    ['pools.mail.queues is an array, but must be an array of at least one queue', { mail: { queues: [] } }],
    ['cannot be the name of a queue', { mail: { queues: ['not a name'] } }],
    ['cannot be the name of a pool', { 'not a name': {} }],
    ['pools.mail.memoryMb is 0', { mail: { memoryMb: 0 } }],
    ['pools.mail.maxAge is "soon"', { mail: { maxAge: 'soon' } }],
    ['at most 20 processes in all', { mail: { processes: 15 }, rest: { processes: 6 } }],
    ['1 to 50 pools', {}],
  ])('P1 refused: %s', (message, pools) => {
    expect(() => checkPools(pools as Record<string, PoolConfig>, defaults)).toThrow(message)
  })

  test('P1 a secret comes from the configuration or the environment, is not short, and stands in no message', () => {
    const secret = 'correct horse battery staple'
    expect(checkSupervise({}, { MILLRACE_SECRET: secret }).secret).toBe(secret)
    expect(checkSupervise({ secret }, { MILLRACE_SECRET: 'another one of theirs' }).secret).toBe(secret)
    expect(checkSupervise({}, { MILLRACE_SECRET: '' }).secret).toBeUndefined()
    expect(() => checkSupervise({ secret: 'short' })).toThrow(/^(?!.*short).*at least 16 characters/)
    expect(() => checkSupervise({ processesMax: 101 })).toThrow('from 1 to 100')
  })
})
