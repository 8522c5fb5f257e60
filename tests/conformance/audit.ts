// The audit trail: one row per attempt, with who, when, how long and how it ended.
import { expect } from 'vitest'
import { decideCancel, decideExpiry, decideReplay } from '../../src/core/decide.ts'
import type { AttemptRow } from '../../src/core/job.ts'
import { POLICY, completed, deferred, expired, failed, released, retried, returned, snoozed } from './outcomes.ts'
import type { Setup } from './world.ts'

export function audit({ test }: Setup): void {
  test('D12 a running attempt shows as attempting, as the last row', async (world) => {
    const id = await world.addOne()
    expect(await world.query.attempts(id)).toEqual([])
    const worker = await world.worker()
    await world.clock.advance(40)
    const run = await worker.claimOne()
    expect(await world.query.attempts(id)).toEqual([
      {
        jobId: id,
        attempt: 1,
        lease: run.lease,
        status: 'attempting',
        worker: worker.id,
        startedAtMs: world.clock.nowMs(),
        finishedAtMs: null,
        durationMs: null,
        error: null,
        note: null,
      } satisfies AttemptRow,
    ])
  })

  test('D12 a run that ended has one row with its worker, times and duration', async (world) => {
    const id = await world.addOne()
    const worker = await world.worker()
    const run = await worker.claimOne()
    const startedAtMs = world.clock.nowMs()
    await world.clock.advance(250)
    await world.apply(completed(run, null, 250))
    expect(await world.query.attempts(id)).toEqual([
      {
        jobId: id,
        attempt: 1,
        lease: run.lease,
        status: 'success',
        worker: worker.id,
        startedAtMs,
        finishedAtMs: startedAtMs + 250,
        durationMs: 250,
        error: null,
        note: null,
      } satisfies AttemptRow,
    ])
  })

  test('D12 the trail tells every ending, oldest first, and numbers the attempts that count', async (world) => {
    const id = await world.addOne({ maxAttempts: 4 })
    const worker = await world.worker()
    const endings = [
      retried,
      released,
      (run: Parameters<typeof snoozed>[0]) => snoozed(run, 0),
      expired,
      failed,
    ] as const
    for (const end of endings) await world.apply(end(await worker.claimOne()))
    const rows = await world.query.attempts(id)
    expect(rows.map(({ status, attempt }) => [status, attempt])).toEqual([
      ['retry', 1],
      ['released', 2],
      ['released', 2],
      ['expired', 2],
      ['failed', 3],
    ])
    expect(new Set(rows.map(({ lease }) => lease)).size).toBe(5)
    expect(rows.every((row) => row.worker === worker.id)).toBe(true)
  })

  test('D12 the error and the note of an ending stand in its row', async (world) => {
    const id = await world.addOne()
    const worker = await world.worker()
    await world.apply(released(await worker.claimOne()))
    await world.apply(failed(await worker.claimOne(), 'no such mailbox'))
    const [first, second] = await world.query.attempts(id)
    expect(first).toMatchObject({ note: 'the worker stops', error: null })
    expect(second?.error).toMatchObject({ name: 'Error', message: 'no such mailbox', class: 'permanent' })
    expect((await world.get(id)).lastError).toEqual(second?.error)
  })

  test('D12 a job that was returned or deferred without a start has no row for it', async (world) => {
    const id = await world.addOne()
    const worker = await world.worker()
    await world.apply(returned(await worker.claimOne()))
    await world.apply(deferred(await worker.claimOne(), 10))
    expect(await world.query.attempts(id)).toEqual([])
    expect(await world.get(id)).toMatchObject({ attemptCount: 0 })
  })

  test('D12 cancelling a waiting job leaves a row that names no run', async (world) => {
    const id = await world.addOne()
    await world.apply(decideCancel(id, 'customer left', 'ada')[0])
    expect(await world.query.attempts(id)).toMatchObject([
      { status: 'cancelled', lease: 0, worker: null, startedAtMs: null, durationMs: null, note: 'customer left' },
    ])
  })

  test('D12 a replay leaves a row with who asked for it', async (world) => {
    const id = await world.addOne()
    await world.apply(failed(await (await world.worker()).claimOne()), decideReplay(id, 'ada'))
    expect((await world.query.attempts(id)).map(({ status, note }) => [status, note])).toEqual([
      ['failed', null],
      ['replayed', 'ada'],
    ])
  })

  test('D12 repeated and stale endings add no row', async (world) => {
    const id = await world.addOne()
    const run = await (await world.worker()).claimOne()
    await world.apply(completed(run), completed(run), failed(run))
    expect(await world.query.attempts(id)).toHaveLength(1)
  })

  test('D12 a job that does not exist has no trail', async (world) => {
    expect(await world.query.attempts(world.newId())).toEqual([])
  })

  test('D5 a retry waits in the store until its time, and the attempts add up to a dead letter', async (world) => {
    const id = await world.addOne({ maxAttempts: 2 })
    const worker = await world.worker()
    await world.apply(retried(await worker.claimOne(), 1_000))
    await world.clock.advance(999)
    await world.jobs.promote(10)
    expect(await worker.claim()).toEqual([])
    await world.clock.advance(1)
    await world.jobs.promote(10)
    const last = await worker.claimOne()
    expect(last).toMatchObject({ id, attemptCount: 1, maxAttempts: 2 })
    await world.apply(retried(last, 1_000))
    expect(await world.get(id)).toMatchObject({ status: 'failed', attemptCount: 2 })
  })

  test('D8 a job that kills its workers is dead-lettered as poison, and its neighbour is not', async (world) => {
    const poison = await world.addOne({ maxAttempts: 10 })
    for (let death = 1; death <= 3; death++) {
      const worker = await world.worker()
      await world.clock.advance(10_000)
      await world.jobs.promote(10)
      expect((await worker.claimOne()).id).toBe(poison)
      await world.kill(worker)
      const [due] = await world.jobs.due('expired', 10)
      expect(due?.job).toMatchObject({ id: poison, crashCount: death - 1 })
      expect(await world.apply(decideExpiry(due!.job, POLICY, () => 0))).toEqual(['applied'])
    }
    expect(await world.get(poison)).toMatchObject({ status: 'failed', crashCount: 3, attemptCount: 3 })
    expect((await world.query.attempts(poison)).at(-1)).toMatchObject({ status: 'expired', note: 'poison' })
    const neighbour = await world.addOne()
    await world.apply(expired(await (await world.worker()).claimOne()))
    expect(await world.get(neighbour)).toMatchObject({ crashCount: 1, attemptCount: 1 })
  })
}
