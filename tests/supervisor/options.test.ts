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
        attempts: null,
        maxJobs: Infinity,
        maxAgeMs: Infinity,
        drainMs: 60_000,
        unresponsiveMs: 60_000,
        startTimeoutMs: 60_000,
        restart: { delayMinMs: 1_000, delayMaxMs: 60_000, stableAfterMs: 10_000, crashLoopAfter: 5 },
      },
    ])
    expect(checkSupervise()).toEqual({ drainMs: 60_000, processesMax: 20, healthCheckMs: 5_000, secret: undefined })
  })

  test('P1 a pool takes from `work` what it does not say itself', () => {
    const work = { queues: ['a'], concurrency: 3, timeout: '1m', attempts: 4 } as const
    const pools = { mail: { concurrency: 5 }, rest: { queues: ['b'], attempts: 2 } }
    const [mail, rest] = checkPools(pools, { ...defaults, ...work })
    expect(mail).toMatchObject({ queues: ['a'], concurrency: 5, timeoutMs: 60_000, attempts: 4 })
    expect(rest).toMatchObject({ queues: ['b'], concurrency: 3, attempts: 2 })
  })

  test('P1 a pool may say how its processes are started again', () => {
    const restart = { delay: '200ms', maxDelay: '2s', stableAfter: '3s', crashLoopAfter: 4 } as const
    const terms = { delayMinMs: 200, delayMaxMs: 2_000, stableAfterMs: 3_000, crashLoopAfter: 4 }
    expect(checkPools({ mail: { restart } }, defaults)[0]).toMatchObject({ restart: terms })
    const slow = checkPools({ mail: { restart: { delay: '2m' } } }, defaults)[0]
    expect(slow, 'never less than the first wait').toMatchObject({
      restart: { delayMinMs: 120_000, delayMaxMs: 120_000 },
    })
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
    ['pools.mail.attempts is 0, but must be a whole number from 1 to 1000', { mail: { attempts: 0 } }],
    ['pools.mail.restart has no option "delays": did you mean delay?', { mail: { restart: { delays: 1 } } }],
    ['pools.mail.restart.maxDelay is "1s"', { mail: { restart: { delay: '2s', maxDelay: '1s' } } }],
    ['pools.mail.restart.crashLoopAfter is 1', { mail: { restart: { crashLoopAfter: 1 } } }],
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
