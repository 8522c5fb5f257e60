// History in the store: each process writes what it counted, one folds, and whatever dies on the way nothing counts twice.
import { describe, expect, test } from 'vitest'
import { MillraceError, createMillrace, defineJob, memory } from '../../src/index.ts'
import type { HistoryPoint, RunContext } from '../../src/index.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/core/rollup.ts'
import { createFolder } from '../../src/observability/folder.ts'
import { createHistory } from '../../src/observability/history.ts'
import { DEPTH_HOUR_SPACE, HOUR_SPACE, MINUTE_SPACE, PART_SPACE } from '../../src/observability/rollup-spaces.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { VirtualClock, setup, startProcess } from './support.ts'

const send = defineJob({
  name: 'send',
  queue: 'mail',
  attempts: 1,
  run({ input }: RunContext<string>) {
    if (input === 'broken') throw new Error('broken')
  },
})

const completed = (points: readonly HistoryPoint[]): number =>
  points.reduce((sum, { series }) => sum + series.reduce((all, one) => all + one.completed, 0), 0)

async function counts(backend: Backend) {
  const of = async (space: string) => (await backend.notes.list(space, 200)).length
  return { parts: await of(PART_SPACE), minutes: await of(MINUTE_SPACE), hours: await of(HOUR_SPACE) }
}

describe('memory', () => {
  test('O1 history adds up what all processes counted, minute by minute and hour by hour', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const jobs = [send] as const
    const [producer, one, two] = [
      await startProcess(clock, backend, jobs),
      await startProcess(clock, backend, jobs),
      await startProcess(clock, backend, jobs),
    ]
    for (const { mill } of [one, two]) await clock.during(mill.work({ concurrency: 1 }))
    const startMs = clock.nowMs()
    for (let minute = 0; minute < 130; minute++) {
      await producer.mill.enqueueMany([
        [send, 'fine'],
        [send, 'fine'],
        [send, 'broken'],
      ])
      await clock.advance(MINUTE_MS)
    }
    const { mill } = producer
    const recent = await mill.history({ from: startMs, to: startMs + 130 * MINUTE_MS })
    expect(recent.length).toBe(130)
    expect(recent[0]).toMatchObject({
      at: new Date(startMs),
      series: [{ queue: 'mail', kind: 'send', enqueued: 3, started: 3, completed: 2, failed: 1, dead: 1, retried: 0 }],
    })
    expect(recent[0]?.series[0]?.failedBy).toEqual({ unknown: 1 })
    expect(recent[0]?.series[0]?.run).toMatchObject({ count: 3 })
    // The last minute may not be over for everybody.
    expect(completed(recent)).toBeGreaterThanOrEqual(2 * 129)
    expect(completed(recent)).toBeLessThanOrEqual(2 * 130)
    // Two hours are folded, the third one is summed of its minutes.
    expect(await counts(backend)).toMatchObject({ hours: 2 })
    const hourly = await mill.history({ from: startMs, step: '1h' })
    expect(hourly.map((point) => completed([point])).slice(0, 2)).toEqual([120, 120])
    expect(completed(hourly)).toBe(completed(recent))
    const none = await mill.history({ from: startMs, step: '1h', queue: 'other' })
    expect(completed(none)).toBe(0)
    for (const process of [producer, one, two]) await clock.during(process.mill.stop())
    // The last of it came with the end.
    expect(completed(await createHistory(() => [backend.notes], clock)({ from: startMs, step: '5m' }))).toBe(260)
    // What is folded is gone, what is too old too.
    await clock.advance(49 * HOUR_MS)
    await backend.notes.prune(10_000)
    expect(await counts(backend)).toEqual({ parts: 0, minutes: 0, hours: 2 })
  })

  test('O1 the depth of queues over time is in the history, minute by minute and hour by hour', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const slow = defineJob({
      name: 'slow',
      queue: 'slow',
      timeout: '1h',
      run: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('over')))),
    })
    const { mill } = await startProcess(clock, backend, [send, slow] as const)
    await clock.during(mill.work({ concurrency: 1, queues: ['slow'] }))
    const startMs = clock.nowMs()
    await mill.enqueue(slow)
    await mill.enqueueMany(Array.from({ length: 6 }, () => [send, 'fine'] as const))
    await clock.advance(30 * MINUTE_MS)
    await mill.enqueueMany(Array.from({ length: 6 }, () => [send, 'fine'] as const))
    await clock.advance(40 * MINUTE_MS)
    const minutes = await mill.history({ from: startMs, queue: 'mail' })
    expect(minutes.slice(1, 29).every(({ depths }) => depths?.[0]?.ready === 6 && depths.length === 1)).toBe(true)
    expect(minutes[20]?.depths?.[0]?.oldestReadySeconds).toBeGreaterThan(19 * 60)
    expect(minutes[35]?.depths).toMatchObject([{ queue: 'mail', ready: 12, readyMax: 12, running: 0 }])
    expect((await mill.history({ from: startMs, kind: 'send' }))[35]?.depths, 'kinds have no depth').toBeNull()
    expect(await backend.notes.list(DEPTH_HOUR_SPACE, 10)).toHaveLength(1)
    const [hour] = await mill.history({ from: startMs, step: '1h' })
    expect(hour?.depths).toMatchObject([
      { queue: 'mail', readyMax: 12, running: 0 },
      { queue: 'slow', ready: 0, running: 1 },
    ])
    expect(hour?.depths?.[0]?.ready).toBeGreaterThan(8)
    expect(hour?.depths?.[0]?.ready).toBeLessThan(10)
    // Nobody looks where no history is kept, and after everybody has stopped.
    await clock.during(mill.stop({ deadline: 0 }))
    const stoppedMs = clock.nowMs()
    await clock.advance(5 * MINUTE_MS)
    const after = await createHistory(() => [backend.notes], clock)({ from: stoppedMs + MINUTE_MS })
    expect(after.map(({ depths }) => depths)).toEqual(after.map(() => null))
  })

  test('O1 a lost reply, a leader that dies between the note and its parts, and two leaders at once count nothing twice', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    let faults = 0
    const worker = await startProcess(clock, backend, [send], {
      maintenance: false,
      around: async (what, call) => {
        const value = await call()
        // It took effect, and nobody is told.
        if (what === 'notes.put' && faults++ % 2 === 0) throw new Error('the reply was lost')
        return value
      },
    })
    await clock.during(worker.mill.work())
    await clock.advance(MINUTE_MS / 2)
    const startMs = clock.nowMs()
    for (let minute = 0; minute < 3; minute++) {
      await worker.mill.enqueueMany([
        [send, 'fine'],
        [send, 'fine'],
      ])
      await clock.advance(MINUTE_MS)
    }
    await clock.advance(10_000)
    expect(await counts(backend)).toEqual({ parts: 3, minutes: 0, hours: 0 })
    const runtime = createRuntime({ clock })
    const read = createHistory(() => [backend.notes], clock)
    expect(completed(await read({ from: startMs }))).toBe(6)
    // One that dies before it has removed what it has folded.
    const dying = createFolder({
      runtime,
      notes: { ...backend.notes, remove: () => new Promise(() => undefined) },
      isLeading: () => true,
    })
    await dying.start()
    await clock.advance(60_000)
    expect(await counts(backend)).toEqual({ parts: 3, minutes: 1, hours: 0 })
    expect(completed(await read({ from: startMs }))).toBe(6)
    const leaders = [1, 2].map(() => createFolder({ runtime, notes: backend.notes, isLeading: () => true }))
    await Promise.all(leaders.map((leader) => leader.start()))
    await clock.advance(60_000)
    expect(await counts(backend)).toEqual({ parts: 0, minutes: 3, hours: 0 })
    expect(completed(await read({ from: startMs }))).toBe(6)
    // A part that comes late belongs to its minute all the same, and to its hour.
    const [note] = await backend.notes.list(MINUTE_SPACE, 1)
    await clock.advance(HOUR_MS)
    await backend.notes.put({ space: PART_SPACE, key: `${note!.key}~late.1`, value: note!.value })
    await clock.advance(60_000)
    expect(completed(await read({ from: startMs, step: '1h' }))).toBe(8)
    expect(await counts(backend)).toEqual({ parts: 0, minutes: 3, hours: 1 })
    await Promise.all(leaders.map((leader) => clock.during(leader.stop())))
  })

  test('O1 what a store could not take is written when it is back, and given up after an hour', async () => {
    let isDown = true
    const { clock, mill, backend } = await setup([send], {
      maintenance: false,
      around: (what, call) => (isDown && what === 'notes.put' ? Promise.reject(new Error('down')) : call()),
    })
    await clock.during(mill.work())
    const startMs = clock.nowMs()
    for (let minute = 0; minute < 70; minute++) {
      await mill.enqueue(send, 'fine')
      await clock.advance(MINUTE_MS)
    }
    isDown = false
    await clock.advance(MINUTE_MS)
    const read = createHistory(() => [backend.notes], clock)
    expect(completed(await read({ from: startMs }))).toBe(60)
    await clock.during(mill.stop())
  })

  test('O1 a store that is away keeps only its own history waiting', async () => {
    const clock = new VirtualClock()
    const [well, away] = [memory({ clock }), memory({ clock })]
    const put = (): Promise<never> => Promise.reject(new Error('down'))
    const far = defineJob({ name: 'far', queue: 'far', connection: 'far', run: () => undefined })
    const connections = { far: { ...away, notes: { ...away.notes, put } }, default: well }
    const mill = await createMillrace({ jobs: [far, send], connections, runtime: { clock }, maintenance: false })
    await clock.during(mill.work())
    const startMs = clock.nowMs()
    for (let minute = 0; minute < 70; minute++) {
      await mill.enqueue(far)
      await mill.enqueue(send, 'fine')
      await clock.advance(MINUTE_MS)
    }
    const read = createHistory(() => [well.notes], clock)
    expect(completed(await read({ from: startMs }))).toBeGreaterThanOrEqual(69)
    await clock.during(mill.stop())
  })

  test('O1 a producer that lives for less than a minute costs the store nothing; history can be off', async () => {
    const { clock, mill, calls, backend } = await setup([send])
    await mill.enqueue(send, 'fine')
    await clock.during(mill.stop())
    expect(calls.get('notes.put')).toBeUndefined()
    const off = await startProcess(clock, backend, [send], { metrics: { history: false } })
    await clock.during(off.mill.work())
    await clock.advance(5 * MINUTE_MS)
    await clock.during(off.mill.stop())
    expect(off.mill.metrics.snapshot().jobs[0]?.counts.completed).toBe(1)
    expect(await counts(backend)).toEqual({ parts: 0, minutes: 0, hours: 0 })
  })

  test('O1 a user of the store who may not write notes is told once and goes on working', async () => {
    const told: string[] = []
    const note = (_: object, text?: string): void => void (text?.includes('history') && told.push(text))
    const logger = { debug: note, info: note, warn: note, error: note }
    const { clock, mill, calls } = await setup([send], {
      logger,
      maintenance: false,
      around: (what, call) =>
        what.startsWith('notes.') ? Promise.reject(new MillraceError('STORE_REFUSED', 'no permission')) : call(),
    })
    await clock.during(mill.work())
    for (let minute = 0; minute < 5; minute++) {
      await mill.enqueue(send, 'fine')
      await clock.advance(MINUTE_MS)
    }
    await clock.during(mill.stop())
    expect([calls.get('notes.put'), told.length]).toEqual([1, 1])
    expect(mill.metrics.snapshot().jobs[0]?.counts.completed).toBe(5)
  })

  test('O1 a span that makes no sense or has too many points is refused', async () => {
    await using mill = await createMillrace({ jobs: [send], backend: memory() })
    const wrong = [
      { step: '90s' },
      { step: '1s' },
      { from: 5, to: 4 },
      { from: new Date(Number.NaN) },
      { queue: '' },
      { form: 1 },
    ]
    for (const options of [...wrong, { from: 0 }]) {
      await expect(mill.history(options as object)).rejects.toMatchObject({
        code: expect.stringMatching(/^INVALID/) as string,
      })
    }
    expect((await mill.history()).length).toBeGreaterThanOrEqual(60)
  })
})
