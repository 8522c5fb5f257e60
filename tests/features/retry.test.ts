// Retry policies, error classes, and what a handler may answer.
import { describe, expect, test } from 'vitest'
import {
  cancel,
  customRetry,
  defineJob,
  exponential,
  fail,
  fixed,
  linear,
  release,
  retryAfter,
  snooze,
} from '../../src/index.ts'
import type { RetryPolicy, RunContext } from '../../src/index.ts'
import { gate, setup } from './support.ts'

/** How long after each failure the next run started. */
async function waits(retry: RetryPolicy, error: unknown = new Error('again')): Promise<readonly number[]> {
  const [ends, starts]: [number[], number[]] = [[], []]
  const job = defineJob({
    name: 'job',
    retry,
    run() {
      starts.push(clock.nowMs())
      ends.push(clock.nowMs())
      throw error
    },
  })
  const { clock, mill } = await setup([job])
  await mill.work()
  await expect(clock.during(mill.enqueueAndWait(job, undefined), 1e9)).rejects.toMatchObject({ code: 'JOB_FAILED' })
  return starts.slice(1).map((startMs, index) => startMs - ends[index]!)
}

function near(actual: readonly number[], expected: readonly (readonly [number, number])[]): void {
  expect(actual.length).toBe(expected.length)
  for (const [index, [min, max]] of expected.entries()) {
    expect(actual[index]).toBeGreaterThanOrEqual(min)
    expect(actual[index]).toBeLessThanOrEqual(max + 10)
  }
}

/** A job that answers or throws the same thing every time, and what became of it. */
async function ending(options: {
  readonly error: unknown
  readonly returned?: boolean
  readonly attempts?: number
  readonly kind?: Partial<Parameters<typeof defineJob>[0]>
  readonly system?: Parameters<typeof setup>[1]
}) {
  const job = defineJob({
    name: 'job',
    attempts: options.attempts ?? 2,
    ...options.kind,
    run: ({ attempt }: RunContext<unknown>) => {
      runs.push([clock.nowMs(), attempt])
      if (options.returned) return options.error
      throw options.error
    },
  })
  const runs: [number, number][] = []
  const { clock, mill } = await setup([job], options.system)
  await mill.work()
  const handle = await mill.enqueue(job, undefined)
  await clock.advance(100)
  const first = await mill.jobs.get(handle)
  return { clock, mill, handle, runs, first: first! }
}

describe('memory', () => {
  test('D5 exponential doubles with jitter up to its cap', async () => {
    near(await waits(exponential({ attempts: 7, base: '1s', max: '10s', jitter: 0.3 })), [
      [1_000, 1_300],
      [2_000, 2_600],
      [4_000, 5_200],
      [8_000, 10_400],
      [10_000, 13_000],
      [10_000, 13_000],
    ])
  })

  test('D5 linear, fixed and custom policies wait as they say', async () => {
    near(await waits(linear({ attempts: 4, step: '2s', max: '5s' })), [
      [2_000, 2_000],
      [4_000, 4_000],
      [5_000, 5_000],
    ])
    near(await waits(fixed({ attempts: 3, delay: '7s' })), [
      [7_000, 7_000],
      [7_000, 7_000],
    ])
    near(await waits(customRetry((attempt) => (attempt === 3 ? null : attempt * 111), { attempts: 9 })), [
      [111, 111],
      [222, 222],
    ])
    const broken = customRetry(
      () => {
        throw new Error('broken policy')
      },
      { attempts: 2 },
    )
    near(await waits(broken), [[1_000, 1_300]])
  })

  test('D5 the wait is in the store: the slot is free and a restarted process goes on with it', async () => {
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 2, delay: '1h' }),
      run({ attempt }) {
        if (attempt === 1) throw new Error('later')
        return 'second'
      },
    })
    const { clock, mill } = await setup([job])
    const worker = await mill.work({ concurrency: 1 })
    const handle = await mill.enqueue(job)
    await clock.advance(100)
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'scheduled', waitsFor: 'retry', attemptCount: 1 })
    expect(worker.running).toBe(0)
    await clock.during(worker.stop())
    await mill.work()
    expect(await clock.during(handle.result(), 3_700_000)).toBe('second')
  })

  const CLASSES: readonly (readonly [string, unknown, string, 'scheduled' | 'failed'])[] = [
    ['a network error', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'network', 'scheduled'],
    ['a wrapped network error', new Error('fetch failed', { cause: { code: 'ENOTFOUND' } }), 'network', 'scheduled'],
    ['a timeout', Object.assign(new Error('x'), { name: 'TimeoutError' }), 'timeout', 'scheduled'],
    ['a 503', Object.assign(new Error('x'), { status: 503 }), 'server', 'scheduled'],
    ['a 429', Object.assign(new Error('x'), { response: { status: 429 } }), 'rate-limited', 'scheduled'],
    ['a full disk', Object.assign(new Error('x'), { code: 'ENOSPC' }), 'resource', 'scheduled'],
    ['a validation error', Object.assign(new Error('x'), { name: 'ZodError', issues: [] }), 'validation', 'failed'],
    ['a 404', Object.assign(new Error('x'), { statusCode: 404 }), 'client', 'failed'],
    ['an unknown error', new Error('x'), 'unknown', 'scheduled'],
    ['a string', 'just text', 'unknown', 'scheduled'],
    ['nothing at all', undefined, 'unknown', 'scheduled'],
  ]

  test.each(CLASSES)('D6 %s', async (_, error, errorClass, status) => {
    const { first, clock } = await ending({ error })
    expect(first).toMatchObject({ status, lastError: { class: errorClass } })
    if (errorClass === 'resource') expect(first.runAt.getTime() - clock.nowMs()).toBeGreaterThan(29 * 60_000)
  })

  test('D6 a Retry-After is obeyed', async () => {
    const error = Object.assign(new Error('slow down'), { status: 429, headers: new Headers({ 'retry-after': '120' }) })
    const { runs, clock } = await ending({ error })
    await clock.until(() => runs.length === 2)
    expect(runs[1]![0] - runs[0]![0]).toBeGreaterThanOrEqual(120_000)
    expect(runs[1]![0] - runs[0]![0]).toBeLessThan(120_100)
  })

  test('D6 the classifier of the kind goes before that of the system, and both before the built-in rules', async () => {
    const system = { classify: () => 'permanent' as const }
    expect((await ending({ error: new Error('x'), system })).first.status).toBe('failed')
    const kind = { classify: () => ({ class: 'network' as const, retry: { afterMs: 60_000 } }) }
    const { first, clock } = await ending({ error: new Error('x'), system, kind })
    expect(first).toMatchObject({ status: 'scheduled', lastError: { class: 'network' } })
    expect(first.runAt.getTime() - clock.nowMs()).toBeGreaterThan(59_000)
    const passing = { classify: () => undefined }
    expect((await ending({ error: new Error('x'), system, kind: passing })).first.status).toBe('failed')
  })

  test('D6 unknown errors fail by option of the system or of the kind', async () => {
    expect((await ending({ error: new Error('x'), system: { unknownErrors: 'fail' } })).first.status).toBe('failed')
    expect((await ending({ error: new Error('x'), kind: { unknownErrors: 'fail' } })).first.status).toBe('failed')
    const kind = { unknownErrors: 'retry' as const }
    expect((await ending({ error: new Error('x'), system: { unknownErrors: 'fail' }, kind })).first.status).toBe(
      'scheduled',
    )
  })

  test.each([true, false])('D6 retryAfter, snooze, release, cancel and fail, returned: %s', async (returned) => {
    const later = await ending({ error: retryAfter('90s', 'busy'), returned })
    expect(later.first).toMatchObject({ status: 'scheduled', attemptCount: 1, lastError: { message: 'busy' } })
    await expect(later.clock.during(later.handle.result())).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(later.runs[1]![0] - later.runs[0]![0]).toBeGreaterThanOrEqual(90_000)

    const snoozed = await ending({ error: snooze('10s'), returned })
    expect(snoozed.first).toMatchObject({ status: 'scheduled', waitsFor: 'snooze', attemptCount: 0, lastError: null })
    await snoozed.clock.advance(95_000)
    expect(snoozed.runs.length).toBe(10)
    expect(snoozed.runs.every(([, attempt]) => attempt === 1)).toBe(true)

    const cancelled = await ending({ error: cancel('not needed'), returned })
    expect(cancelled.first).toMatchObject({ status: 'cancelled' })

    const failed = await ending({ error: fail('hopeless'), returned })
    expect(failed.first).toMatchObject({ status: 'failed', attemptCount: 1, lastError: { message: 'hopeless' } })
  })

  test('D6 a released job goes to the end of its queue and counts no attempt', async () => {
    const order: number[] = []
    const job = defineJob({
      name: 'job',
      run({ input, attempt }: RunContext<number>) {
        order.push(input)
        return input === 0 && order.length === 1 ? release('not yet') : attempt
      },
    })
    const { clock, mill } = await setup([job])
    const handles = await mill.enqueueMany([0, 1, 2, 3].map((input) => [job, input] as const))
    await mill.work({ concurrency: 1 })
    expect(await clock.during(handles[0]!.result())).toBe(1)
    expect(order.filter((input) => input === 0).length).toBe(2)
    expect(order.indexOf(1)).toBeLessThan(order.lastIndexOf(0))
    expect(await mill.jobs.get(handles[0]!)).toMatchObject({ attemptCount: 1 })
  })

  test('D6 the context tells attempt, maxAttempts and whether a failure would be tried again', async () => {
    const seen: unknown[] = []
    const end = gate()
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 3, delay: 0 }),
      run({ attempt, maxAttempts, willRetry, job: { attempt: same } }) {
        seen.push([attempt, maxAttempts, willRetry, same])
        if (attempt === 3) end.open()
        throw new Error('again')
      },
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    await mill.enqueue(job)
    await clock.during(end.opened)
    expect(seen).toEqual([
      [1, 3, true, 1],
      [2, 3, true, 2],
      [3, 3, false, 3],
    ])
  })
})
