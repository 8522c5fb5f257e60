// Dead letters: what is kept, how they are found, replayed, removed, and who is told.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { FailedInfo, RunContext } from '../../src/index.ts'
import { setup } from './support.ts'

/** Jobs fail while `broken` is set. */
async function failing(
  count = 1,
  hooks: { readonly kind?: (info: FailedInfo) => void; readonly system?: (info: FailedInfo) => void } = {},
) {
  const state = { broken: true, runs: [] as number[] }
  const job = defineJob({
    name: 'job',
    queue: 'jobs',
    attempts: 2,
    ...(hooks.kind && { onFailed: hooks.kind }),
    run({ input, attempt }: RunContext<number>) {
      state.runs.push(input)
      if (state.broken) throw Object.assign(new Error(`broken ${input}`), { code: 'E_BROKEN' })
      return attempt
    },
  })
  const { clock, mill } = await setup([job], hooks.system && { onFailed: hooks.system })
  await mill.work()
  const handles = await mill.enqueueMany(
    Array.from({ length: count }, (_, index) => [job, index, { priority: 30, tags: [`t${index % 2}`] }] as const),
  )
  for (const handle of handles) await clock.during(handle.result().catch(() => undefined))
  state.broken = false
  state.runs = []
  return { clock, mill, handles, state, job }
}

describe('memory', () => {
  test('D7 a dead letter keeps payload, error with stack, attempts, priority and connection', async () => {
    const { mill, handles } = await failing()
    const letter = await mill.deadLetters.get(handles[0]!)
    expect(letter).toMatchObject({
      status: 'failed',
      payload: 0,
      priority: 30,
      attemptCount: 2,
      connection: 'default',
      lastError: { name: 'Error', message: 'broken 0', code: 'E_BROKEN', class: 'unknown' },
      attempts: [
        { attempt: 1, status: 'retry' },
        { attempt: 2, status: 'failed' },
      ],
    })
    expect(letter!.lastError!.stack).toContain('dead-letters.test.ts')
    expect(await mill.deadLetters.get('019f0000-0000-7000-8000-000000000000')).toBeNull()
  })

  test('D7 dead letters are listed and filtered, others are not among them', async () => {
    const { clock, mill, handles, job } = await failing(6)
    await clock.during(mill.enqueueAndWait(job, 99))
    const listed = await mill.deadLetters.list()
    expect(listed.items.map(({ id }) => id).toSorted()).toEqual(handles.map(({ id }) => id).toSorted())
    expect((await mill.deadLetters.list({ tag: 't1' })).items.length).toBe(3)
    expect((await mill.deadLetters.list({ errorText: 'broken 4' })).items.map(({ id }) => id)).toEqual([handles[4]!.id])
    expect((await mill.deadLetters.list({ olderThan: '1h' })).items).toEqual([])
    await clock.advance(3_600_001)
    expect((await mill.deadLetters.list({ olderThan: '1h' })).items.length).toBe(6)
  })

  test('D7 replay runs the same job again with fresh attempts and leaves an audit row', async () => {
    const { clock, mill, handles } = await failing()
    const [handle] = handles
    await mill.deadLetters.replay(handle!, { actor: 'ann' })
    expect(await clock.during(handle!.result())).toBe(1)
    expect(await mill.jobs.get(handle!)).toMatchObject({
      status: 'completed',
      attemptCount: 1,
      replayedBy: 'ann',
      priority: 30,
    })
    const rows = (await mill.jobs.attempts(handle!)).map(({ status }) => status)
    expect(rows).toEqual(['retry', 'failed', 'replayed', 'success'])
    await expect(mill.deadLetters.replay(handle!)).rejects.toMatchObject({ code: 'NOT_REPLAYABLE' })
  })

  test('D7 replaying twice at once runs the job once', async () => {
    const { clock, mill, handles, state } = await failing()
    const [handle] = handles
    await Promise.all([mill.deadLetters.replay(handle!), mill.deadLetters.replay(handle!).catch(() => undefined)])
    await clock.during(handle!.result())
    await clock.advance(10_000)
    expect(state.runs).toEqual([0])
  })

  test('D7 replay as new is linked both ways, and the same failure gives the same new job', async () => {
    const { clock, mill, handles, state } = await failing()
    const [handle] = handles
    const [into, again] = [
      await mill.deadLetters.replayAsNew(handle!, { actor: 'bob' }),
      await mill.deadLetters.replayAsNew(handle!),
    ]
    expect(again).toBe(into)
    expect(await clock.during(mill.result(into))).toBe(1)
    expect(await mill.jobs.get(handle!)).toMatchObject({ status: 'failed', replayedInto: into, replayedBy: 'bob' })
    expect((await mill.jobs.get(handle!))!.replayedAt).not.toBeNull()
    expect(await mill.jobs.get(into)).toMatchObject({ replayOf: handle!.id, payload: 0, priority: 30, tags: ['t0'] })
    expect(state.runs).toEqual([0])
  })

  test('D7 replaying many: a dry run counts and changes nothing, a rate is kept, each runs once', async () => {
    const { clock, mill, state } = await failing(60)
    expect(await mill.deadLetters.replayMany({ queue: 'jobs' }, { dryRun: true })).toEqual({
      matched: 60,
      replayed: 0,
      skipped: 0,
    })
    expect((await mill.deadLetters.list({}, { limit: 200 })).items.length).toBe(60)
    const starts: number[] = []
    mill.on('started', () => starts.push(clock.nowMs()))
    const startMs = clock.nowMs()
    const counted = await clock.during(mill.deadLetters.replayMany({ queue: 'jobs' }, { perSecond: 10 }))
    expect(counted).toEqual({ matched: 60, replayed: 60, skipped: 0 })
    expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(5_000)
    await clock.advance(2_000)
    expect(state.runs.length).toBe(60)
    for (const from of starts)
      expect(starts.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(20)
    expect(await mill.deadLetters.replayMany({ queue: 'jobs' })).toEqual({ matched: 0, replayed: 0, skipped: 0 })
  })

  test('D7 a filter and a limit replay only what they name', async () => {
    const { clock, mill, state } = await failing(10)
    expect(await mill.deadLetters.replayMany({ tag: 't1' }, { limit: 3 })).toMatchObject({ matched: 3, replayed: 3 })
    await clock.advance(2_000)
    expect(state.runs.length).toBe(3)
    expect(state.runs.every((input) => input % 2 === 1)).toBe(true)
    const asNew = await mill.deadLetters.replayMany({ tag: 't0' }, { asNew: true })
    expect(asNew).toEqual({ matched: 5, replayed: 5, skipped: 0 })
    expect(await mill.deadLetters.replayMany({ tag: 't0' }, { asNew: true })).toEqual({
      matched: 5,
      replayed: 0,
      skipped: 5,
    })
  })

  test('D7 a replay whose unique key is taken is refused and touches nobody', async () => {
    let broken = true
    const job = defineJob({
      name: 'job',
      attempts: 1,
      run: () => {
        if (broken) throw new Error('no')
      },
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    const lost = await mill.enqueue(job, undefined, { unique: 'k' })
    await clock.advance(100)
    broken = false
    const holder = await mill.enqueue(job, undefined, { unique: 'k', delay: '1h' })
    await expect(mill.deadLetters.replay(lost)).rejects.toMatchObject({ code: 'UNIQUE_KEY_TAKEN' })
    expect(await mill.deadLetters.replayMany({})).toEqual({ matched: 1, replayed: 0, skipped: 1 })
    expect([await lost.status(), await holder.status()]).toEqual(['failed', 'scheduled'])
  })

  test('D7 remove deletes one dead letter and nothing that is not one', async () => {
    const { clock, mill, handles, job } = await failing(2)
    const live = await mill.enqueue(job, 5, { delay: '1h' })
    expect(await mill.deadLetters.remove(handles[0]!)).toBe(true)
    expect(await mill.deadLetters.remove(handles[0]!)).toBe(false)
    expect(await mill.deadLetters.remove(live)).toBe(false)
    expect(await live.status()).toBe('scheduled')
    clock.jump(31 * 86_400_000)
    expect(await mill.deadLetters.prune()).toBe(1)
    expect((await mill.deadLetters.list()).items).toEqual([])
  })

  test('D7 prune deletes those older than asked and keeps the others', async () => {
    const { clock, mill, handles, state, job } = await failing(3)
    await clock.advance(3_600_000)
    state.broken = true
    await clock.during(mill.enqueueAndWait(job, 7).catch(() => undefined))
    expect(await mill.deadLetters.prune({ olderThan: '30m', queue: 'other' })).toBe(0)
    expect(await mill.deadLetters.prune({ olderThan: '30m' })).toBe(3)
    expect((await mill.deadLetters.list()).items.length).toBe(1)
    expect(await mill.jobs.get(handles[0]!)).toBeNull()
  })

  test('D7 the hooks of the kind and of the system are told once per dead letter; one that throws harms nobody', async () => {
    const told: string[] = []
    const { clock } = await failing(3, {
      kind({ id, error, attempts, connection }) {
        told.push(`kind ${error.message} ${attempts} ${connection} ${id.length}`)
        throw new Error('a bad hook')
      },
      system: ({ name, queue }) => void told.push(`system ${name} ${queue}`),
    })
    await clock.advance(1_000)
    expect(told.filter((line) => line.startsWith('kind')).toSorted()).toEqual(
      [0, 1, 2].map((n) => `kind broken ${n} 2 default 36`),
    )
    expect(told.filter((line) => line === 'system job jobs').length).toBe(3)
  })
})
