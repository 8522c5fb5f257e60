// Claiming: exclusive, ordered, numbered, fenced.
import { expect } from 'vitest'
import type { JobId, WorkerId } from '../../src/core/job.ts'
import { dump } from './dump.ts'
import { completed, retried, returned } from './outcomes.ts'
import { QUEUE } from './world.ts'
import type { Setup } from './world.ts'

export function claim({ test }: Setup): void {
  test('D1 a claim hands over the job with a lease and marks it running', async (world) => {
    const id = await world.addOne({ tags: ['a'], meta: '{"m":1}', limitKey: 'k', priority: 9 })
    const worker = await world.worker()
    await world.clock.advance(20)
    const run = await worker.claimOne()
    const stored = await world.get(id)
    expect(run).toEqual({
      id,
      lease: stored.lease,
      queue: QUEUE,
      name: stored.name,
      payload: stored.payload,
      priority: 9,
      attemptCount: 0,
      maxAttempts: stored.maxAttempts,
      crashCount: 0,
      timeoutMs: stored.timeoutMs,
      enqueuedAtMs: stored.enqueuedAtMs,
      runAtMs: stored.runAtMs,
      tags: ['a'],
      meta: '{"m":1}',
      batch: null,
      parents: [],
      group: null,
      limitKey: 'k',
      rateLimited: false,
    })
    expect(stored).toMatchObject({ status: 'running', worker: worker.id, startedAtMs: world.clock.nowMs() })
  })

  test('D1 a job is handed out once', async (world) => {
    const id = await world.addOne()
    const [one, two] = [await world.worker(), await world.worker()]
    expect((await one.claim()).map((run) => run.id)).toEqual([id])
    expect(await two.claim()).toEqual([])
    expect(await one.claim()).toEqual([])
  })

  test('D1 every claim of a job mints a higher lease', async (world) => {
    await world.addOne({ maxAttempts: 10 })
    const worker = await world.worker()
    const leases: number[] = []
    for (let round = 0; round < 4; round++) {
      const run = await worker.claimOne()
      leases.push(run.lease)
      await world.apply(round === 1 ? returned(run) : retried(run))
    }
    expect(leases).toEqual([...new Set(leases)].sort((a, b) => a - b))
  })

  test('D1 a claim takes at most its limit', async (world) => {
    await world.add({}, {}, {})
    const worker = await world.worker()
    expect(await worker.claim(2)).toHaveLength(2)
    expect(await worker.claim(2)).toHaveLength(1)
    expect(await worker.claim(2)).toHaveLength(0)
  })

  test('D1 a claim of nothing takes nothing', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const before = await dump(world.backend)
    expect(await worker.ask({ limit: 0 })).toMatchObject({ jobs: [], verdicts: [] })
    expect(await worker.ask({ queues: [] })).toMatchObject({ jobs: [], verdicts: [] })
    expect(await dump(world.backend)).toEqual(before)
  })

  test('D1 queues are asked in the order given', async (world) => {
    const [a1, a2] = await world.add({ queue: 'a' }, { queue: 'a' })
    const [b1] = await world.add({ queue: 'b', priority: 0 })
    const worker = await world.worker()
    expect((await worker.claim(2, ['b', 'a'])).map((run) => run.id)).toEqual([b1, a1])
    expect((await worker.claim(2, ['b', 'a'])).map((run) => run.id)).toEqual([a2])
  })

  test('D1 other queues than those named are left alone', async (world) => {
    const id = await world.addOne({ queue: 'other' })
    const worker = await world.worker()
    expect(await worker.claim()).toEqual([])
    expect(await world.statusOf(id)).toEqual(['queued'])
  })

  test('D1 a worker that never registered is refused as dead', async (world) => {
    const id = await world.addOne()
    const reply = await world.jobs.claim({ worker: 'nobody' as WorkerId, claimNo: 1, queues: [QUEUE], limit: 1 })
    expect(reply).toMatchObject({ jobs: [], refused: 'worker-dead' })
    expect(await world.statusOf(id)).toEqual(['queued'])
  })

  test('D1 a worker that was declared dead or retired is refused as dead', async (world) => {
    await world.addOne()
    const [dead, retired] = [await world.worker(), await world.worker()]
    await world.kill(dead)
    await world.workers.retire(retired.id)
    expect(await dead.ask()).toMatchObject({ jobs: [], refused: 'worker-dead' })
    expect(await retired.ask()).toMatchObject({ jobs: [], refused: 'worker-dead' })
  })

  test('D1 a claim number is used once: a doubled or late claim takes nothing', async (world) => {
    await world.add({}, {}, {})
    const worker = await world.worker()
    expect((await worker.ask({ claimNo: 5, limit: 1 })).jobs).toHaveLength(1)
    const before = await dump(world.backend)
    expect(await worker.ask({ claimNo: 5, limit: 1 })).toMatchObject({ jobs: [], refused: 'superseded' })
    expect(await worker.ask({ claimNo: 4, limit: 1 })).toMatchObject({ jobs: [], refused: 'superseded' })
    expect(await dump(world.backend)).toEqual(before)
    expect((await worker.ask({ claimNo: 6, limit: 1 })).jobs).toHaveLength(1)
  })

  test('D1 claim numbers of different workers do not meet', async (world) => {
    await world.add({}, {})
    const [one, two] = [await world.worker(), await world.worker()]
    expect((await one.ask({ claimNo: 9, limit: 1 })).jobs).toHaveLength(1)
    expect((await two.ask({ claimNo: 1, limit: 1 })).jobs).toHaveLength(1)
  })

  test('D1 after a lost reply the worker learns by holdings what it was given', async (world) => {
    await world.add({}, {}, {})
    const worker = await world.worker()
    const lost = await worker.ask({ claimNo: 1, limit: 2 })
    const held = await world.jobs.holdings(worker.id, 1)
    expect(sorted(held)).toEqual(sorted(lost.jobs.map(({ id, lease }) => ({ jobId: id, lease }))))
  })

  test('D1 holdings fences claims that are still under way', async (world) => {
    const id = await world.addOne()
    const worker = await world.worker()
    expect(await world.jobs.holdings(worker.id, 3)).toEqual([])
    expect(await worker.ask({ claimNo: 3 })).toMatchObject({ jobs: [], refused: 'superseded' })
    expect(await world.statusOf(id)).toEqual(['queued'])
    expect((await worker.ask({ claimNo: 4 })).jobs).toHaveLength(1)
  })

  test('D1 holdings never lowers the last claim number', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    await worker.ask({ claimNo: 7, limit: 0 })
    await world.jobs.holdings(worker.id, 2)
    expect(await worker.ask({ claimNo: 7 })).toMatchObject({ jobs: [], refused: 'superseded' })
  })

  test('D1 holdings lists only runs of that worker that go on', async (world) => {
    await world.add({}, {}, {})
    const [one, two] = [await world.worker(), await world.worker()]
    const [first, second] = await one.claim(2)
    await two.claim(1)
    await world.apply(completed(first!))
    expect(await world.jobs.holdings(one.id, 0)).toEqual([{ jobId: second!.id, lease: second!.lease }])
  })

  test('D1 a claim settles first, and its verdicts come in the order given', async (world) => {
    await world.add({}, {}, { maxAttempts: 1 })
    const worker = await world.worker()
    const [one, two] = await worker.claim(2)
    const reply = await worker.ask({ settle: [completed(one!), retried(two!), completed(one!)] })
    expect(reply.verdicts).toEqual(['applied', 'applied', 'already'])
    // The retried one is ready again before the claim looks, behind the one that waited.
    expect(reply.jobs.map(({ id }) => id)).toEqual([expect.anything(), two!.id])
  })

  test('D1 a refused claim settles all the same', async (world) => {
    await world.add({}, {})
    const worker = await world.worker()
    const [one, two] = await worker.claim(2)
    const superseded = await worker.ask({ claimNo: 0, settle: [completed(one!)] })
    expect(superseded).toMatchObject({ jobs: [], verdicts: ['applied'], refused: 'superseded' })
    await world.workers.retire(worker.id)
    const dead = await worker.ask({ settle: [completed(two!)] })
    expect(dead).toMatchObject({ jobs: [], verdicts: ['applied'], refused: 'worker-dead' })
    expect(await world.statusOf(one!.id, two!.id)).toEqual(['completed', 'completed'])
  })

  test('D1 a settling claim that is repeated says already and takes nothing', async (world) => {
    await world.add({}, {}, {})
    const worker = await world.worker()
    const [run] = await worker.claim(1)
    const request = { claimNo: worker.nextClaimNo(), limit: 1, settle: [completed(run!)] }
    const first = await worker.ask(request)
    expect(first.jobs).toHaveLength(1)
    const again = await worker.ask(request)
    expect(again).toMatchObject({ jobs: [], verdicts: ['already'], refused: 'superseded' })
    expect(await world.jobs.holdings(worker.id, request.claimNo)).toEqual([
      { jobId: first.jobs[0]!.id, lease: first.jobs[0]!.lease },
    ])
  })
}

function sorted(refs: readonly { readonly jobId: JobId; readonly lease: number }[]): readonly unknown[] {
  return refs.map(({ jobId, lease }) => `${jobId}:${lease}`).sort()
}
