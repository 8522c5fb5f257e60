// Handlers that misbehave: no other job is lost, wedged or run again because of them.
/* oxlint-disable unicorn/no-thenable -- thenables are what is tested here */
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { Tally, setup } from './support.ts'

type Handler = (context: RunContext<unknown>, clock: { timer(ms: number, fire: () => void): unknown }) => unknown

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const hostileThenable = {
  get then(): never {
    throw new Error('a getter that throws')
  },
}

const BAD: readonly (readonly [string, Handler])[] = [
  [
    'throws a string',
    () => {
      throw 'text'
    },
  ],
  [
    'throws undefined',
    () => {
      throw undefined
    },
  ],
  [
    'throws a symbol',
    () => {
      throw Symbol('s')
    },
  ],
  ['rejects with null', () => Promise.reject(null)],
  [
    'throws an object without a prototype',
    () => {
      throw Object.create(null)
    },
  ],
  [
    'throws an error whose fields throw',
    () => {
      throw new Proxy(
        {},
        {
          get: () => {
            throw new Error('hostile')
          },
        },
      )
    },
  ],
  [
    'throws a revoked proxy',
    () => {
      throw revoked()
    },
  ],
  ['resolves with a revoked proxy', () => Promise.resolve().then(() => ({ at: revoked() }))],
  [
    'rejects long after its timeout',
    (_, clock) =>
      new Promise((__, reject) => {
        clock.timer(60_000, () => reject(new Error('late')))
      }),
  ],
  [
    'resolves long after its timeout',
    (_, clock) =>
      new Promise((resolve) => {
        clock.timer(60_000, () => resolve('late'))
      }),
  ],
  ['never settles', () => new Promise(() => undefined)],
  [
    'ignores its abort',
    ({ signal }) => {
      void signal.aborted
      return new Promise(() => undefined)
    },
  ],
  ['returns 50 MB', () => 'x'.repeat(50_000_000)],
  ['returns a list of 50 MB', () => Array.from({ length: 50 }, () => 'x'.repeat(1_000_000))],
  [
    'returns a circle',
    () => {
      const circle: { self?: unknown } = {}
      circle.self = circle
      return circle
    },
  ],
  ['returns a BigInt', () => 1n],
  ['returns a function', () => () => 1],
  ['returns a thenable that throws', () => hostileThenable],
  ['returns a thenable that never answers', () => ({ then: () => undefined })],
  [
    'returns a thenable that answers twice',
    () => ({
      then: (ok: (value: unknown) => void, no: (error: unknown) => void) => {
        ok(1)
        no(new Error('also'))
      },
    }),
  ],
  [
    'writes 100 000 log lines',
    ({ log }) => {
      for (let line = 0; line < 100_000; line++) log.info(`line ${line}`)
    },
  ],
]

/** 50 jobs around the bad one; each must complete, once, and the bad one must have ended. */
async function beside(handler: Handler) {
  const runs = new Tally()
  const good = defineJob({
    name: 'good',
    async run({ input }: RunContext<number>) {
      runs.add(input)
      await new Promise<void>((resolve) => clock.timer(input % 7, resolve))
      return input
    },
  })
  const bad = defineJob({
    name: 'bad',
    attempts: 2,
    timeout: '5s',
    run: (context: RunContext<unknown>): unknown => handler(context, clock),
  })
  const { clock, mill } = await setup([good, bad])
  const line = (input: number) => [good, input] as const
  const [before, after] = [[...Array(25).keys()], [...Array(25).keys()].map((n) => n + 25)]
  const handles = await mill.enqueueMany(before.map(line))
  const badHandles = [await mill.enqueue(bad, undefined), await mill.enqueue(bad, undefined)]
  const more = await mill.enqueueMany(after.map(line))
  await mill.work({ concurrency: 2 })
  for (const [index, handle] of [...handles, ...more].entries()) {
    expect(await clock.during(handle.result(), 120_000)).toBe(index)
  }
  await clock.advance(200_000)
  for (const input of [...before, ...after]) expect(runs.of(input)).toBe(1)
  return { clock, mill, badHandles }
}

describe('memory', () => {
  test.each(BAD)('D2 a handler that %s harms no other job', async (_, handler) => {
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      const { mill, badHandles } = await beside(handler)
      for (const handle of badHandles) expect(['completed', 'failed']).toContain(await handle.status())
      const [counts] = await mill.jobs.counts('default')
      expect(counts!.counts).toMatchObject({ running: 0, queued: 0, scheduled: 0 })
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })

  test('D2 a handler that blocks the loop for a minute delays its own process and nothing else', async () => {
    const runs = new Tally()
    const aborts: unknown[] = []
    const lost: string[] = []
    const good = defineJob({
      name: 'good',
      async run({ input, signal }: RunContext<number>) {
        runs.add(input)
        signal.addEventListener('abort', () => aborts.push(signal.reason))
        await new Promise<void>((resolve) => clock.timer(500 + input * 10, resolve))
        return input
      },
    })
    const blocking = defineJob({
      name: 'blocking',
      async run({ signal }) {
        signal.addEventListener('abort', () => aborts.push(signal.reason))
        clock.jump(60_000)
        await Promise.resolve()
      },
    })
    const { clock, mill } = await setup([good, blocking])
    for (const name of ['expired', 'stale', 'workerLost'] as const) mill.on(name, () => lost.push(name))
    await mill.work({ concurrency: 10 })
    const handles = await mill.enqueueMany([...Array(50).keys()].map((input) => [good, input] as const))
    for (let block = 0; block < 3; block++) {
      await clock.advance(300)
      await clock.during((await mill.enqueue(blocking)).result(), 300_000)
    }
    for (const [index, handle] of handles.entries()) expect(await clock.during(handle.result(), 300_000)).toBe(index)
    for (let input = 0; input < 50; input++) expect(runs.of(input)).toBe(1)
    expect(aborts).toEqual([])
    expect(lost).toEqual([])
    const jobs = (await mill.jobs.list({}, { limit: 200 })).items
    expect(jobs.every(({ attemptCount, crashCount }) => attemptCount === 1 && crashCount === 0)).toBe(true)
  })

  test('D2 a loop that is blocked at any moment between two beats takes no job away', async () => {
    const runs = new Tally()
    const lost: string[] = []
    const good = defineJob({
      name: 'good',
      async run({ input }: RunContext<number>) {
        runs.add(input)
        await new Promise<void>((resolve) => clock.timer(20_000, resolve))
      },
    })
    const { clock, mill } = await setup([good])
    for (const name of ['expired', 'stale', 'workerLost'] as const) mill.on(name, () => lost.push(name))
    await mill.work()
    const handles = await mill.enqueueMany([...Array(10).keys()].map((input) => [good, input] as const))
    for (let offset = 0; offset < 40; offset++) {
      await clock.advance(137)
      clock.jump(60_000)
    }
    for (const handle of handles) await clock.during(handle.result(), 300_000)
    for (let input = 0; input < 10; input++) expect(runs.of(input)).toBe(1)
    expect(lost).toEqual([])
  })
})
