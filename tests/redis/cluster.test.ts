// Three nodes, real time: no script touches a key of another node, what crosses queues arrives, and what a caller that
// died has left is carried on by maintenance.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redis } from '../../src/backends/redis/backend.ts'
import { settleArgs } from '../../src/backends/redis/change-args.ts'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import { createStore, prepared } from '../../src/backends/redis/store.ts'
import { decideCancel, decideOrphan, decideRemove, decideReplay } from '../../src/core/decide.ts'
import type { BatchId, ClaimedJob, JobId, JobStatus, NewJob, WorkerId } from '../../src/core/job.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createIdSource, createRuntime } from '../../src/runtime/runtime.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import type { Transition } from '../../src/core/transition.ts'
import type { Backend } from '../../src/store/ports.ts'
import { cleanTracking } from '../../src/tasks/tracking.ts'
import { completed, failed, retried } from '../conformance/outcomes.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { newName, until } from './support.ts'

const NODES = 3
/** Enough for every node to have some. */
const QUEUES = ['a', 'b', 'c', 'd', 'e', 'f'] as const

const newId = createIdSource(systemClock)
let cluster: RedisCluster
const open: Backend[] = []

beforeAll(async () => {
  cluster = await startRedisCluster({ masters: NODES })
})

afterAll(async () => {
  for (const backend of open) await backend.stop()
  await cluster.stop()
})

async function setup(prefix = newName()) {
  const backend = redis({ cluster: cluster.urls, prefix })
  await backend.start()
  open.push(backend)
  const worker = newId() as WorkerId // minted here, as the worker does
  await backend.workers.register({ id: worker, host: 'h', pid: 1, queues: [...QUEUES], concurrency: 10 })
  let claimNo = 0
  const insert = async (...jobs: readonly NewJob[]): Promise<void> => {
    expect(await backend.jobs.insert(jobs)).toMatchObject({ ok: true })
  }
  const claim = async (queue: string): Promise<ClaimedJob> => {
    const { jobs } = await backend.jobs.claim({ worker, claimNo: ++claimNo, queues: [queue], limit: 1 })
    expect(jobs).toHaveLength(1)
    return jobs[0]!
  }
  const statusOf = async (...jobs: readonly { readonly id: JobId }[]): Promise<readonly (JobStatus | undefined)[]> =>
    (await backend.query.get(jobs.map(({ id }) => id))).map((one) => one?.status)
  return { prefix, backend, worker, insert, claim, statusOf }
}

test('P4 a sweep of dead keys walks over all nodes, and touches no job', async () => {
  const { prefix, backend, insert, statusOf } = await setup()
  const jobs = QUEUES.map((queue) =>
    job(queue, { unique: { key: 'k', mode: 'until-finished', windowMs: 0, onDuplicate: 'keep' } }),
  )
  await insert(...jobs)
  const link = createLink({
    server: { cluster: cluster.urls },
    name: newName(),
    connectTimeoutMs: 2_000,
    logger: silentLogger,
  })
  await link.connect()
  const gone = newId()
  for (const queue of QUEUES) {
    await link.command('HSET', `${prefix}:{${queue}}:job:${gone}`, 'status', 'completed')
    await link.command('SET', `${prefix}:{${queue}}:unique:gone`, `${gone} until-finished 0`)
  }
  const context = { runtime: createRuntime(), backend, signal: new AbortController().signal }
  expect(await cleanTracking(context)).toMatchObject({ outcome: 'done', counts: { dead: 2 * QUEUES.length } })
  expect(await cleanTracking(context)).toMatchObject({ outcome: 'done', counts: { dead: 0 } })
  expect(await statusOf(...jobs)).toEqual(QUEUES.map(() => 'queued'))
  for (const queue of QUEUES) expect(await link.command('EXISTS', `${prefix}:{${queue}}:unique:k`)).toBe(1)
  await link.close()
})

function job(queue: string, fields: Partial<NewJob> = {}): NewJob {
  // minted here, as the client does
  return { id: newId() as JobId, queue, name: 'task', payload: '{}', timeoutMs: 1_000, ...fields }
}

/** The script alone, as by a process that ends before it delivers what the script left to it. */
async function settleAndDie(prefix: string, queue: string, transition: Transition): Promise<void> {
  const server = { cluster: cluster.urls }
  const link = createLink({ server, name: 'test', connectTimeoutMs: 5_000, logger: silentLogger })
  await link.connect()
  const store = createStore({ link, prefix, clock: systemClock, logger: silentLogger })
  store.where.saw(transition.jobId, queue)
  await prepared(store, 'jobs.apply', 'cycle')(queue, settleArgs([transition], store.where).args)
  await link.close()
}

describe('a Cluster of three nodes', () => {
  test('jobs of many queues go in, run and end', async () => {
    const { backend, worker, statusOf } = await setup()
    const jobs = QUEUES.flatMap((queue) => [job(queue), job(queue, { priority: 10 })])
    expect(await backend.jobs.insert(jobs)).toMatchObject({ ok: true })
    const reply = await backend.jobs.claim({ worker, claimNo: 1, queues: QUEUES, limit: 100 })
    expect(reply.jobs.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort())
    const verdicts = await backend.jobs.apply(reply.jobs.map((run) => completed(run)))
    expect(verdicts).toEqual(jobs.map(() => 'applied'))
    expect(new Set(await statusOf(...jobs))).toEqual(new Set(['completed']))
    expect(await backend.jobs.holdings(worker, 5)).toEqual([])
  })

  test('J5 runs that last are shown, each on the node of its queue', async () => {
    const { prefix, insert, claim, worker, statusOf } = await setup()
    const jobs = QUEUES.map((queue) => job(queue))
    await insert(...jobs)
    for (const queue of QUEUES) await claim(queue)
    expect(new Set(await statusOf(...jobs))).toEqual(new Set(['running']))
    const server = { cluster: cluster.urls }
    const link = createLink({ server, name: 'test', connectTimeoutMs: 5_000, logger: silentLogger })
    await link.connect()
    for (const { id, queue } of jobs) {
      const look = () => link.command('HMGET', `${prefix}:{${queue}}:job:${id}`, 'status', 'worker')
      await until(async () => String(await look()) === `running,${worker}`, `the run of ${queue} to be shown`)
    }
    await link.close()
  })

  test('a child in another queue starts when its parents have ended', async () => {
    const { backend, insert, claim, statusOf } = await setup()
    const [one, two] = [job('a'), job('b')]
    const child = job('c', {
      dependsOn: [
        { parent: one.id, onFailure: 'fail' },
        { parent: two.id, onFailure: 'fail' },
      ],
    })
    await insert(child, one, two)
    expect(await statusOf(child)).toEqual(['blocked'])
    await backend.jobs.apply([completed(await claim('a'))])
    expect(await statusOf(child)).toEqual(['blocked'])
    await backend.jobs.apply([completed(await claim('b'))])
    expect(await statusOf(child)).toEqual(['queued'])
  })

  test('a child in another queue is orphaned by a parent that fails, and a replay waits for live parents only', async () => {
    const { backend, insert, claim, statusOf } = await setup()
    const parent = job('a')
    const child = job('d', { dependsOn: [{ parent: parent.id, onFailure: 'fail' }] })
    await insert(parent)
    await insert(child)
    await backend.jobs.apply([failed(await claim('a'))])
    const [orphan] = await backend.jobs.due('orphaned', 10)
    expect(orphan).toMatchObject({ job: { id: child.id }, orphan: { parent: parent.id, parentStatus: 'failed' } })
    expect(await backend.jobs.apply([decideOrphan(orphan!.job, orphan!.orphan!)])).toEqual(['applied'])
    expect(await backend.jobs.apply([decideReplay(child.id, 'ada')])).toEqual(['applied'])
    expect(await statusOf(child)).toEqual(['queued'])
  })

  test('a batch over several queues counts, and its callback goes in once', async () => {
    const { backend, insert, claim, statusOf } = await setup()
    const batch = newId() as BatchId // minted here, as the client does
    const done = job('f')
    await backend.batches.create({
      id: batch,
      name: 'import',
      meta: null,
      callbacks: { complete: done, success: null, failure: null },
    })
    await insert(job('a', { batch }), job('b', { batch }), job('c', { batch }))
    expect(await backend.batches.seal(batch)).toBe(true)
    await backend.jobs.apply([completed(await claim('a')), failed(await claim('b'))])
    expect((await backend.batches.get(batch))?.counts).toMatchObject({ total: 3, pending: 1, completed: 1, failed: 1 })
    expect(await statusOf(done)).toEqual([undefined])
    await backend.jobs.apply([completed(await claim('c'))])
    expect(await backend.batches.get(batch)).toMatchObject({ counts: { pending: 0, completed: 2 } })
    expect(await statusOf(done)).toEqual(['queued'])
    expect((await backend.batches.list({ limit: 10 })).items).toHaveLength(1)
  })

  test('a cancelled batch lists its live jobs until none is left', async () => {
    const { backend, insert } = await setup()
    const batch = newId() as BatchId // minted here, as the client does
    const callbacks = { complete: null, success: null, failure: null }
    await backend.batches.create({ id: batch, name: 'import', meta: null, callbacks })
    await insert(job('a', { batch }), job('e', { batch }))
    await backend.batches.cancel(batch)
    const due = await backend.jobs.due('batch-cancelled', 10)
    expect(due).toHaveLength(2)
    await backend.jobs.apply(due.flatMap(({ job: one }) => decideCancel(one.id, 'batch cancelled')))
    expect(await backend.jobs.due('batch-cancelled', 10)).toEqual([])
    expect((await backend.batches.get(batch))?.finishedAtMs).not.toBeNull()
  })

  test('limits, keys, retries, cancellation, deletion and pruning work in every queue', async () => {
    const { backend, worker, insert, claim, statusOf } = await setup()
    for (const queue of QUEUES) {
      const limits = { concurrency: 1, rate: null, perKeyConcurrency: null, perKeyRate: null }
      await backend.queues.configure(queue, { limits })
      const unique = { key: 'k', mode: 'until-finished', windowMs: 0, onDuplicate: 'keep' } as const
      const [first, second] = [job(queue, { unique }), job(queue, { group: 'g' })]
      await insert(first, second, job(queue, { unique }))
      expect(await statusOf(first, second)).toEqual(['queued', 'blocked'])
      await backend.jobs.apply([retried(await claim(queue), 1)])
      expect(await statusOf(first, second)).toEqual(['scheduled', 'queued'])
      const run = await claim(queue)
      await backend.jobs.apply(decideCancel(run.id, 'no'))
      expect((await backend.workers.beat({ id: worker, running: 1, commandsSeen: 0 })).cancels).toEqual([
        { jobId: run.id, lease: run.lease },
      ])
      await backend.jobs.apply([completed(run)])
      await until(async () => (await backend.jobs.promote(10)).nextDueInMs === null, 'the retry')
      expect(await backend.jobs.apply(decideRemove(first.id))).toContain('applied')
    }
    const rule = { status: 'completed', olderThanMs: 0 } as const
    expect(await backend.jobs.prune([rule], 100)).toBe(QUEUES.length)
    expect((await backend.query.counts()).map(({ queue }) => queue).sort()).toEqual([...QUEUES])
  })

  test('what a caller left in the outbox is carried by the next promotion', async () => {
    const { backend, prefix, insert, claim, statusOf } = await setup()
    const parent = job('a')
    const child = job('b', { dependsOn: [{ parent: parent.id, onFailure: 'fail' }] })
    await insert(parent, child)
    await settleAndDie(prefix, 'a', completed(await claim('a')))
    expect(await statusOf(parent, child)).toEqual(['completed', 'blocked'])
    await backend.jobs.promote(10)
    expect(await statusOf(child)).toEqual(['queued'])
  })

  test('runs of a worker that was declared dead are due in every queue', async () => {
    const { backend, worker, insert, claim } = await setup()
    await insert(job('a'), job('b'), job('c'))
    const runs = [await claim('a'), await claim('b'), await claim('c')]
    const { beat } = (await backend.workers.list()).find(({ id }) => id === worker)!
    await backend.workers.declareDead([{ id: worker, beat }])
    const due = await backend.jobs.due('expired', 10)
    expect(due.map(({ job: one }) => one.id).sort()).toEqual(runs.map(({ id }) => id).sort())
    expect(await backend.jobs.claim({ worker, claimNo: 99, queues: ['a'], limit: 1 })).toMatchObject({
      refused: 'worker-dead',
    })
  })
})
