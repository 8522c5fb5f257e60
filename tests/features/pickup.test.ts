// How fast an idle worker starts a new job, with wake-ups and without them.
import { describe, expect, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import { setup } from './support.ts'

describe('memory', () => {
  test('D3 an idle worker starts a new job in milliseconds: p50 <= 5 ms, p99 <= 20 ms', async () => {
    const startedAt = new Map<string, number>()
    const job = defineJob({
      name: 'job',
      run: ({ job: { id } }) => {
        startedAt.set(id, performance.now())
      },
    })
    const mill = await createMillrace({ jobs: [job], backend: memory() })
    await mill.work()
    const waits: number[] = []
    // What the machine itself takes for one turn of the loop, measured in between: its stalls are not ours.
    const turns: number[] = []
    // The first rounds compile the code that is measured.
    for (let round = -50; round < 200; round++) {
      const enqueuedAt = performance.now()
      const handle = await mill.enqueue(job)
      await handle.result({ timeout: '5s' })
      if (round >= 0) waits.push(startedAt.get(handle.id)! - enqueuedAt)
      const turnedAt = performance.now()
      await new Promise((resolve) => setImmediate(resolve))
      if (round >= 0) turns.push(performance.now() - turnedAt)
    }
    await mill.stop()
    const at = (list: readonly number[], index: number): number => list.toSorted((a, b) => a - b)[index]!
    expect(at(waits, 100)).toBeLessThanOrEqual(5)
    expect(at(waits, 198) - at(turns, 198)).toBeLessThanOrEqual(20)
  })

  test('D3 without any wake-up the poll alone starts a job within about a second', async () => {
    const job = defineJob({ name: 'job', run: () => 'ran' })
    const { clock, mill } = await setup([job], { deaf: true })
    await mill.work()
    for (const idleMs of [0, 100, 5_000, 65_300, 3_600_000]) {
      await clock.advance(idleMs)
      const enqueuedMs = clock.nowMs()
      const handle = await mill.enqueue(job)
      await clock.during(handle.result(), 5_000)
      expect((await mill.jobs.get(handle))!.startedAt!.getTime() - enqueuedMs).toBeLessThanOrEqual(1_250)
    }
  })

  test('D3 an idle worker asks rarely: at most 1.5 claims a second', async () => {
    const job = defineJob({ name: 'job', run: () => 1 })
    const { clock, mill, calls } = await setup([job])
    await mill.work()
    await clock.advance(60_000)
    const before = calls.get('jobs.claim') ?? 0
    await clock.advance(600_000)
    const claims = (calls.get('jobs.claim') ?? 0) - before
    expect(claims / 600).toBeLessThanOrEqual(1.5)
    expect(claims / 600).toBeGreaterThan(0.5)
  })

  test('D3 a delayed job starts within milliseconds of its time, without a poll', async () => {
    const job = defineJob({ name: 'job', run: () => 'ran' })
    const { clock, mill } = await setup([job])
    await mill.work()
    await clock.advance(10_000)
    const dueMs = clock.nowMs() + 7_777
    const handle = await mill.enqueue(job, undefined, { delay: 7_777 })
    await clock.during(handle.result())
    const { startedAt } = (await mill.jobs.get(handle))!
    expect(startedAt!.getTime() - dueMs).toBeGreaterThanOrEqual(0)
    expect(startedAt!.getTime() - dueMs).toBeLessThanOrEqual(10)
  })
})
