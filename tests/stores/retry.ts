// Retries that live in the store, error classes, what a handler may answer, and dead letters.
import { expect, test } from 'vitest'
import { cancel, defineJob, exponential, fail, fixed, release, retryAfter, snooze } from '../../src/index.ts'
import type { FailedInfo, RunContext } from '../../src/index.ts'
import type { OpenPlace } from './place.ts'

export function retrying(place: OpenPlace): void {
  test('D5 a retry waits in the store: the process that failed it ends, another runs it at its time', async () => {
    await using at = await place()
    const ran: string[] = []
    const kind = (who: string) =>
      defineJob({
        name: 'flaky',
        retry: exponential({ attempts: 3, base: 400, jitter: 0.3 }),
        run({ attempt }) {
          ran.push(`${who} ${attempt}`)
          if (attempt === 1) throw new Error('not yet')
          return who
        },
      })
    const [one, two] = [await at.process([kind('one')]), await at.process([kind('two')])]
    await one.work()
    const retried = new Promise((resolve) => one.on('retried', resolve))
    const handle = await two.enqueue('flaky')
    await retried
    await one.stop()
    const waiting = await two.jobs.get(handle)
    expect(waiting).toMatchObject({ status: 'scheduled', attemptCount: 1, lastError: { message: 'not yet' } })
    const [row] = await two.jobs.attempts(handle)
    const delayMs = waiting!.runAt.getTime() - row!.finishedAt!.getTime()
    expect(delayMs).toBeGreaterThanOrEqual(399)
    expect(delayMs).toBeLessThanOrEqual(521)
    await two.work()
    expect(await handle.result()).toBe('two')
    expect(ran).toEqual(['one 1', 'two 2'])
    const done = await two.jobs.get(handle)
    expect(done!.startedAt!.getTime()).toBeGreaterThanOrEqual(waiting!.runAt.getTime())
  })

  test('D6 the class of an error decides: network and unknown retry, validation and 4xx do not', async () => {
    await using at = await place()
    const errors = {
      network: Object.assign(new Error('connection reset'), { code: 'ECONNRESET' }),
      server: Object.assign(new Error('bad gateway'), { status: 502 }),
      unknown: new Error('who knows'),
      notFound: Object.assign(new Error('not found'), { status: 404 }),
      mine: new Error('known to the classifier'),
    }
    type Case = keyof typeof errors
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 5, delay: '1h' }),
      run({ input }: RunContext<Case>) {
        throw errors[input]
      },
    })
    const mill = await at.process([job], { classify: (error) => (error === errors.mine ? 'permanent' : undefined) })
    await mill.work()
    const cases = Object.keys(errors) as Case[]
    const settled = new Map<string, string>()
    const all = new Promise<void>((resolve) => {
      const note = (status: string) => (event: { readonly id: string }) => {
        settled.set(event.id, status)
        if (settled.size === cases.length) resolve()
      }
      mill.on('retried', note('scheduled'))
      mill.on('failed', note('failed'))
    })
    const handles = await mill.enqueueMany(cases.map((input) => [job, input] as const))
    await all
    const statuses = await Promise.all(handles.map((handle) => handle.status()))
    expect(Object.fromEntries(cases.map((name, index) => [name, statuses[index]]))).toEqual({
      network: 'scheduled',
      server: 'scheduled',
      unknown: 'scheduled',
      notFound: 'failed',
      mine: 'failed',
    })
  })

  test('D6 a handler answers retryAfter, snooze, release, cancel or fail, and the store shows it', async () => {
    await using at = await place()
    const answers = {
      retryAfter: () => retryAfter('1h'),
      snooze: () => snooze('2h', 'quota'),
      release: () => release('not here'),
      cancel: () => cancel('enough'),
      fail: () => fail('never'),
    }
    type Answer = keyof typeof answers
    let released = 0
    const job = defineJob({
      name: 'job',
      attempts: 3,
      run({ input }: RunContext<Answer>) {
        if (input === 'release' && ++released > 1) return 'ran here'
        return answers[input]()
      },
    })
    const mill = await at.process([job])
    await mill.work()
    const names = Object.keys(answers) as Answer[]
    const handles = await mill.enqueueMany(names.map((name) => [job, name] as const))
    const [later, snoozed, again, cancelled, failed] = handles
    expect(await again!.result()).toBe('ran here')
    await expect(cancelled!.result()).rejects.toMatchObject({ code: 'JOB_CANCELLED' })
    await expect(failed!.result()).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(await mill.jobs.get(later!)).toMatchObject({ status: 'scheduled', attemptCount: 1 })
    expect(await mill.jobs.get(snoozed!)).toMatchObject({ status: 'scheduled', attemptCount: 0 })
    expect(await mill.jobs.get(again!)).toMatchObject({ attemptCount: 1 })
    expect(await mill.jobs.get(failed!)).toMatchObject({ status: 'failed', attemptCount: 1, maxAttempts: 3 })
  })

  test('D7 dead letters are told, listed, filtered, inspected, replayed one by one or together, and removed', async () => {
    await using at = await place()
    const told: FailedInfo[] = []
    const state = { broken: true }
    const job = defineJob({
      name: 'job',
      queue: 'jobs',
      retry: fixed({ attempts: 2, delay: 0, jitter: 0 }),
      run({ input }: RunContext<number>) {
        if (state.broken) throw Object.assign(new Error(`broken ${input}`), { code: 'E_BROKEN' })
        return input
      },
    })
    const worker = await at.process([job], { onFailed: (info) => void told.push(info) })
    const operator = await at.process([job])
    await worker.work()
    const handles = await operator.enqueueMany(
      Array.from({ length: 6 }, (_, n) => [job, n, { priority: 30, tags: [`t${n % 2}`] }] as const),
    )
    for (const handle of handles) await handle.result().catch(() => undefined)
    const letter = await operator.deadLetters.get(handles[0]!)
    expect(letter).toMatchObject({
      status: 'failed',
      payload: 0,
      priority: 30,
      attemptCount: 2,
      connection: 'default',
      lastError: { message: 'broken 0', code: 'E_BROKEN' },
      attempts: [{ status: 'retry' }, { status: 'failed' }],
    })
    expect(letter!.lastError!.stack).toContain('retry.ts')
    expect(told.map(({ id }) => id).toSorted()).toEqual(handles.map(({ id }) => id).toSorted())
    expect((await operator.deadLetters.list({ tag: 't1', errorText: 'BROKEN 3' })).items).toMatchObject([
      { payload: 3 },
    ])

    state.broken = false
    const [one, two, three] = handles
    await Promise.all(
      [operator, worker].map((mill) => mill.deadLetters.replay(one!, { actor: 'ann' }).catch(() => null)),
    )
    expect(await one!.result()).toBe(0)
    const trail = (await operator.jobs.attempts(one!)).map(({ status }) => status)
    expect(trail).toEqual(['retry', 'failed', 'replayed', 'success'])
    const [into, again] = [await operator.deadLetters.replayAsNew(two!), await worker.deadLetters.replayAsNew(two!)]
    expect(again).toBe(into)
    expect(await operator.result(into)).toBe(1)
    expect(await operator.jobs.get(into)).toMatchObject({ replayOf: two!.id, priority: 30, tags: ['t1'] })
    expect(await operator.deadLetters.remove(three!)).toBe(true)
    expect(await operator.deadLetters.replayMany({ queue: 'jobs' }, { dryRun: true })).toMatchObject({ matched: 4 })
    // The second one was replayed as a new job already.
    expect(await operator.deadLetters.replayMany({ queue: 'jobs' })).toEqual({ matched: 4, replayed: 3, skipped: 1 })
    for (const handle of handles.slice(3)) await handle.result()
    expect((await operator.deadLetters.list()).items.map(({ id }) => id)).toEqual([two!.id])
    expect(await operator.deadLetters.prune({ olderThan: 0 })).toBe(1)
    expect(await two!.status().catch(() => 'gone')).toBe('gone')
  })
}
