// What is left in Redis of jobs that are gone, planted by hand: it goes, in small steps, and nothing of a live job does.
import { expect, test } from 'vitest'
import { createMillrace, defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Sweepable } from '../../src/store/tracking.ts'
import { cleanTracking } from '../../src/tasks/tracking.ts'
import { useRedisPlaces } from './features/support.ts'

/** The server has keys of other tests too; few of these at a time. */
const STEP_KEYS = 20
const places = useRedisPlaces()
const GONE = '019f0000-0000-7000-8000-00000000000'
const work = defineJob({ name: 'work', queue: 'mail', run: ({ input }: RunContext<string>) => input })

test('P4 orphans of jobs, unique keys and workers go; live jobs, finished ones and keys that are held stay', async () => {
  await using at = await places()
  const backend = at.backend()
  const tracked = backend as typeof backend & Sweepable // Redis is
  const mill = await createMillrace({ jobs: [work], backend })
  const worker = await mill.work()
  const done = await mill.enqueue(work, 'done')
  await done.result()
  await worker.stop()
  const waiting = await mill.enqueue(work, 'waits', { unique: 'held' })
  const later = await mill.enqueue(work, 'later', { delay: '1h', tags: ['t'] })
  const key = (part: string): string => `${at.prefix}:{mail}:${part}`
  for (let no = 0; no < 9; no++) {
    await at.command('HSET', key(`job:${GONE}${no}`), 'status', 'completed')
    await at.command('RPUSH', key(`job:${GONE}${no}:logs`), 'line')
  }
  await at.command('SET', key('unique:orphan:with {odd}'), `${GONE}1 until-finished 0`)
  await at.command('SET', key('unique:timed'), `${GONE}1 for-a-time 9999999999999`, 'EX', 3600)
  await at.command('HSET', `${at.prefix}:{_workers}:cancels:nobody`, 'x', 1)
  await at.command('SET', `${at.prefix}x:{mail}:job:${GONE}1`, 'somebody else')
  const before = await dump(at)

  const context = { runtime: createRuntime(), backend, signal: new AbortController().signal }
  const look = await cleanTracking(context, { dryRun: true })
  expect(look).toMatchObject({ dryRun: true, counts: { dead: 20, endless: 0, foreign: 0 } })
  expect(await dump(at)).toEqual(before)
  // Whatever comes together in one step.
  let [cursor, dead]: [string | null, number] = [null, 0]
  do {
    const step = await tracked.sweepTracking({ cursor, count: STEP_KEYS, isDryRun: true })
    cursor = step.cursor
    dead += step.counts.dead
  } while (cursor !== null)
  expect(dead).toBe(20)

  const result = await cleanTracking(context)
  expect(result).toMatchObject({ outcome: 'done', counts: { dead: 20 } })
  const after = await dump(at)
  const gone = before.filter((name) => !after.includes(name))
  expect(gone).toHaveLength(20)
  expect(gone.every((name) => name.includes(GONE) || /orphan|nobody/.test(name))).toBe(true)
  expect(after).toContain(key('unique:timed'))
  expect(after).toContain(key('unique:held'))
  expect(await at.command('EXISTS', `${at.prefix}x:{mail}:job:${GONE}1`)).toBe(1)
  for (const [id, status] of [
    [done.id, 'completed'],
    [waiting.id, 'queued'],
    [later.id, 'scheduled'],
  ] as const) {
    expect(await mill.jobs.get(id)).toMatchObject({ status })
  }
  expect((await mill.enqueue(work, 'again', { unique: 'held' })).duplicate).toBe(true)
  expect(await cleanTracking(context)).toMatchObject({ counts: { dead: 0 } })
  await mill.stop({ deadline: 0 })
  await at.command('DEL', `${at.prefix}x:{mail}:job:${GONE}1`)
})

test('P4 a walk that is out of time goes on with the next run', async () => {
  await using at = await places()
  const backend = at.backend()
  const mill = await createMillrace({ jobs: [work], backend })
  await mill.enqueueMany(Array.from({ length: 5 }, (_, no) => [work, String(no)] as const))
  for (let no = 0; no < 1_500; no++) {
    await at.command('SET', `${at.prefix}:{mail}:unique:${no}`, `${GONE}1 until-finished 0`)
  }
  const runtime = createRuntime()
  let nowMs = 0
  const clock = { ...runtime.clock, monoMs: () => (nowMs += 10) }
  const context = { runtime: { ...runtime, clock }, backend, signal: new AbortController().signal }
  let dead = 0
  let runs = 0
  for (let outcome = 'partial'; outcome === 'partial' && runs < 1_000; runs++) {
    const result = await cleanTracking(context, { maxTime: 25 })
    outcome = result.outcome
    dead += result.counts['dead'] ?? 0
  }
  expect(dead).toBe(1_500)
  expect(runs).toBeGreaterThan(1)
  expect((await mill.jobs.list({ queue: 'mail' })).items).toHaveLength(5)
  await mill.stop({ deadline: 0 })
})

/** All keys but those that change by themselves. */
async function dump(at: { prefix: string; command: (name: string, ...args: (string | number)[]) => Promise<unknown> }) {
  const found: string[] = []
  let cursor = '0'
  do {
    const reply = await at.command('SCAN', cursor, 'MATCH', `${at.prefix}:*`, 'COUNT', 1_000)
    const [next, keys] = reply as [string, string[]]
    found.push(...keys)
    cursor = next
  } while (cursor !== '0')
  return found.filter((name) => !/watchers|parked|_notes/.test(name)).sort()
}
