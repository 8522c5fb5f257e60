// Claims that stand: answered by an insert at most once, and never after the worker has claimed or looked again. Where a
// backend has no hand-overs a claim that stands is like any other.
import { expect } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import type { HandOver } from '../../src/store/hand-overs.ts'
import type { ClaimReply } from '../../src/store/ports.ts'
import { readyTopic } from '../../src/store/wakeups.ts'
import { completed } from './outcomes.ts'
import { QUEUE, after, eventually, queueSettings, unique } from './world.ts'
import type { Setup, TestWorker, World } from './world.ts'

interface Ear {
  readonly heard: HandOver[]
  /** The next hand-over. */
  readonly next: () => Promise<HandOver>
}

export function handOvers({ test }: Setup): void {
  const standing = (title: string, run: (world: World, worker: TestWorker, ear: Ear) => Promise<void>): void => {
    test(`D3 ${title}`, async (world) => {
      const worker = await world.worker()
      const ear = await listen(world, worker)
      if (ear === null) await isLikeAnyOther(world, worker)
      else await run(world, worker, ear)
    })
  }

  standing('a claim that stands is answered by the next insert', async (world, worker, ear) => {
    const reply = await stand(worker)
    const id = await world.addOne({ tags: ['a'], meta: '{"m":"ü"}', priority: 9 })
    const { claimNo, before, jobs } = await ear.next()
    const stored = await world.get(id)
    expect([reply.jobs, before, claimNo]).toEqual([[], 0, 1])
    expect(jobs).toEqual([
      {
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
        meta: '{"m":"ü"}',
        batch: null,
        parents: [],
        group: null,
        limitKey: null,
        rateLimited: false,
      },
    ])
    expect(stored).toMatchObject({ status: 'running', worker: worker.id, startedAtMs: world.clock.nowMs() })
    expect(await world.jobs.holdings(worker.id, 0)).toEqual([{ jobId: id, lease: stored.lease }])
    expect(await world.apply(completed(jobs[0]!))).toEqual(['applied'])
    expect(await world.statusOf(id)).toEqual(['completed'])
  })

  standing('a claim that stands is answered once, and the next claim says so', async (world, worker, ear) => {
    await stand(worker)
    const [one, two] = [await world.addOne(), await world.addOne()]
    expect((await ear.next()).jobs.map(({ id }) => id)).toEqual([one])
    expect(await worker.ask()).toMatchObject({ jobs: [{ id: two }], answered: 1 })
    await stand(worker)
    const three = await world.addOne()
    expect(await ear.next()).toMatchObject({ claimNo: 3, before: 1, jobs: [{ id: three }] })
    expect(await worker.ask()).toMatchObject({ jobs: [], answered: 3 })
  })

  standing('jobs of all kinds are handed over as they are claimed', async (world, worker, ear) => {
    await stand(worker)
    const batch = await world.batch()
    const id = await world.addOne({ batch, group: 'g', limitKey: 'k' })
    const { jobs } = await ear.next()
    expect(jobs).toMatchObject([{ id, batch, group: 'g', limitKey: 'k', attemptCount: 0 }])
    const behind = await world.addOne({ group: 'g' })
    expect(await world.statusOf(behind)).toEqual(['blocked'])
    await world.apply(completed(jobs[0]!))
    expect((await worker.claimOne()).id).toBe(behind)
  })

  standing('a unique key that is held until its job starts is free again', async (world, worker, ear) => {
    await stand(worker)
    const id = await world.addOne(unique('k', { mode: 'until-started' }))
    expect((await ear.next()).jobs.map((job) => job.id)).toEqual([id])
    const [again] = await world.accept(unique('k', { mode: 'until-started' }))
    expect(again).toMatchObject({ outcome: 'inserted' })
  })

  standing(
    'an insert that adds nothing ready hands nothing over, and the claim still stands',
    async (world, worker, ear) => {
      const holder = await world.addOne({ ...unique('held'), delayMs: 60_000 })
      await stand(worker)
      await world.addOne({ delayMs: 1_000 })
      expect(await world.accept(unique('held'))).toEqual([{ id: holder, outcome: 'duplicate' }])
      const refused = await world.jobs.insert([world.job({ dependsOn: [after(world.newId())] })])
      expect([refused.ok, ear.heard]).toEqual([false, []])
      const id = await world.addOne()
      expect((await ear.next()).jobs.map((job) => job.id)).toEqual([id])
    },
  )

  standing(
    'the last of several workers gets what comes, the next insert rings for the others',
    async (world, worker, ear) => {
      const other = await world.worker()
      const rung: string[] = []
      const stop = world.wakeups.listen([readyTopic(QUEUE)], (topic) => void rung.push(topic))
      await other.ask({ stands: true })
      await stand(worker)
      const first = await world.addOne()
      expect((await ear.next()).jobs.map(({ id }) => id)).toEqual([first])
      const second = await world.addOne()
      await eventually(() => rung.length > 0, 'the bell')
      expect((await other.claimOne()).id).toBe(second)
      stop()
    },
  )

  standing('a claim that got something does not stand: who has it is busy', async (world, worker, ear) => {
    await world.addOne()
    expect((await stand(worker)).jobs).toHaveLength(1)
    await isLeft(world, ear)
  })

  standing('a claim with a visibility of its own does not stand', async (world, worker, ear) => {
    await worker.ask({ stands: true, leaseMs: 1_000 })
    await isLeft(world, ear)
  })

  standing('the most urgent of what an insert brings is handed over', async (world, worker, ear) => {
    await stand(worker, 2)
    const [, urgent, , second] = await world.add(
      { priority: 200 },
      { priority: 10 },
      { priority: 100 },
      { priority: 10 },
    )
    expect((await ear.next()).jobs.map(({ id }) => id)).toEqual([urgent, second])
    expect(await world.countReady()).toBe(2)
  })

  standing('a claim gets no more than it asked for', async (world, worker, ear) => {
    await stand(worker, 2)
    await world.add({}, {}, {})
    expect((await ear.next()).jobs).toHaveLength(2)
    expect(await world.countReady()).toBe(1)
  })

  standing('a large insert hands over a bounded number and rings for the rest', async (world, worker, ear) => {
    await stand(worker)
    const rung: string[] = []
    const stop = world.wakeups.listen([readyTopic(QUEUE)], (topic) => void rung.push(topic))
    await world.add(...Array.from({ length: LIMITS.handOverMax + 5 }, () => ({})))
    expect((await ear.next()).jobs).toHaveLength(LIMITS.handOverMax)
    await eventually(() => rung.length > 0, 'the bell')
    expect(await worker.claim()).toHaveLength(5)
    stop()
  })

  standing('a claim that stands in two queues is answered by one of them', async (world, worker, ear) => {
    await worker.ask({ queues: [QUEUE, 'other'], stands: true })
    const [one, two] = [await world.addOne({ queue: 'other' }), await world.addOne()]
    expect((await ear.next()).jobs.map(({ id }) => id)).toEqual([one])
    expect(await world.statusOf(one, two)).toEqual(['running', 'queued'])
  })

  standing('nothing is handed over to a claim that was followed by another', async (world, worker, ear) => {
    await stand(worker)
    await worker.ask()
    await isLeft(world, ear)
  })

  standing('nothing is handed over to a claim that was followed by a look', async (world, worker, ear) => {
    await stand(worker)
    await world.jobs.holdings(worker.id, worker.nextClaimNo() - 1)
    await isLeft(world, ear)
    await worker.ask({ claimNo: 5, stands: true })
    await world.jobs.holdings(worker.id, 6)
    await world.drain(await world.worker())
    await isLeft(world, ear)
  })

  standing('nothing is handed over to the dead', async (world, worker, ear) => {
    await stand(worker)
    await world.kill(worker)
    await isLeft(world, ear)
  })

  standing('nothing is handed over from a queue that is paused', async (world, worker, ear) => {
    await stand(worker)
    await world.queues.ensure([queueSettings(QUEUE)])
    await world.queues.configure(QUEUE, { paused: true })
    await isLeft(world, ear)
  })

  standing('nothing is handed over to a worker that does not hear it', async (world, worker, ear) => {
    const deaf = await world.worker()
    await stand(deaf)
    await isLeft(world, ear)
    expect((await worker.claim()).length).toBe(1)
  })

  standing('a claim that did not ask to stand is not answered', async (world, worker, ear) => {
    await worker.ask()
    await isLeft(world, ear)
  })
}

async function listen({ backend }: World, { id }: TestWorker): Promise<Ear | null> {
  if (backend.handOvers === undefined) return null
  const heard: HandOver[] = []
  let taken = 0
  await backend.handOvers.listen(
    id,
    (handOver) => void heard.push(handOver),
    () => undefined,
  )
  const next = async (): Promise<HandOver> => {
    await eventually(() => heard.length > taken, 'a hand-over')
    return heard[taken++]!
  }
  return { heard, next }
}

async function stand(worker: TestWorker, limit = 50): Promise<ClaimReply> {
  const reply = await worker.ask({ stands: true, limit })
  expect(reply.refused).toBeUndefined()
  return reply
}

/** What is inserted now waits for a claim. */
async function isLeft(world: World, ear: Ear): Promise<void> {
  const before = await world.countReady()
  await world.addOne()
  expect(await world.countReady()).toBe(before + 1)
  expect(ear.heard).toEqual([])
}

async function isLikeAnyOther(world: World, worker: TestWorker): Promise<void> {
  expect(await stand(worker)).toMatchObject({ jobs: [] })
  const id = await world.addOne()
  expect(await world.countReady()).toBe(1)
  expect((await worker.claimOne()).id).toBe(id)
}
