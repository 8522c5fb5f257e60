// Retention: finished jobs are deleted by age, per queue and status, in bounded steps.
import { expect } from 'vitest'
import type { JobId, NewJob } from '../../src/core/job.ts'
import { dump } from './dump.ts'
import { cancelledByHandler, completed, failed } from './outcomes.ts'
import type { Setup, World } from './world.ts'

const DAY = 24 * 60 * 60_000
const ENDINGS = { completed, failed, cancelled: cancelledByHandler } as const

export function prune({ test }: Setup): void {
  for (const status of ['completed', 'failed', 'cancelled'] as const) {
    test(`D7 prune deletes ${status} jobs that are older than asked, with their trail, and no others`, async (world) => {
      const old = await finished(world, status)
      await world.clock.advance(DAY)
      const young = await finished(world, status)
      const others = [await finished(world, status === 'failed' ? 'completed' : 'failed'), await world.addOne()]
      expect(await world.jobs.prune([{ status, olderThanMs: DAY / 2 }], 10)).toBe(1)
      expect(await world.statusOf(old)).toEqual(['gone'])
      expect(await world.query.attempts(old)).toEqual([])
      expect((await world.statusOf(young, ...others)).includes('gone')).toBe(false)
    })
  }

  test('D7 prune never touches jobs that are not finished, however old', async (world) => {
    await world.add({}, {}, { delayMs: 1_000 * DAY })
    await (await world.worker()).claimOne()
    await world.clock.advance(900 * DAY)
    const before = await dump(world.backend)
    const rules = (['completed', 'failed', 'cancelled'] as const).map((status) => ({ status, olderThanMs: 0 }))
    expect(await world.jobs.prune(rules, 100)).toBe(0)
    expect(await dump(world.backend)).toEqual(before)
  })

  test('D7 a rule without a queue holds for the queues that no other rule of the call names', async (world) => {
    const [a, b, c] = [
      await finished(world, 'failed', 'a'),
      await finished(world, 'failed', 'b'),
      await finished(world, 'failed', 'c'),
    ]
    await world.clock.advance(DAY)
    const rules = [
      { queue: 'a', status: 'failed', olderThanMs: 10 * DAY },
      { queue: 'c', status: 'failed', olderThanMs: 1 },
      { status: 'failed', olderThanMs: DAY / 2 },
    ] as const
    expect(await world.jobs.prune(rules, 100)).toBe(2)
    expect(await world.statusOf(a, b, c)).toEqual(['failed', 'gone', 'gone'])
  })

  test('D7 prune deletes at most as many as asked', async (world) => {
    for (let no = 0; no < 5; no++) await finished(world, 'completed')
    await world.clock.advance(DAY)
    const rules = [{ status: 'completed', olderThanMs: 1 }] as const
    expect(await world.jobs.prune(rules, 2)).toBe(2)
    expect(await world.jobs.prune(rules, 2)).toBe(2)
    expect(await world.jobs.prune(rules, 2)).toBe(1)
    expect(await world.jobs.prune(rules, 2)).toBe(0)
  })

  test('D7 the age counts from the end of the job, not from its enqueue', async (world) => {
    const id = await world.addOne()
    await world.clock.advance(10 * DAY)
    await world.apply(completed(await (await world.worker()).claimOne()))
    await world.clock.advance(100)
    expect(await world.jobs.prune([{ status: 'completed', olderThanMs: DAY }], 10)).toBe(0)
    expect(await world.statusOf(id)).toEqual(['completed'])
  })

  test('D7 without rules prune deletes nothing', async (world) => {
    await finished(world, 'completed')
    await world.clock.advance(1_000 * DAY)
    expect(await world.jobs.prune([], 10)).toBe(0)
  })
}

async function finished(world: World, status: keyof typeof ENDINGS, queue = 'done'): Promise<JobId> {
  const id = await world.addOne({ queue } satisfies Partial<NewJob>)
  const run = await (await world.worker()).claimOne(queue)
  expect(run.id).toBe(id)
  await world.apply(ENDINGS[status](run))
  return id
}
