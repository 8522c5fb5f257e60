// jobs.insert on a Cluster: an atom per queue. Everything that could refuse is looked at before, and so are ids that somebody
// chose, in the other queues; batches are joined
// before and left again by requests that made no job; messages go out when all queues have their jobs.
import { mayJoin } from '../../core/batch.ts'
import { findCycle } from '../../core/flow.ts'
import type { BatchId, JobId, NewJob } from '../../core/job.ts'
import type { InsertRefusal, InsertReply, InsertResult } from '../../store/ports.ts'
import { batchRecord } from './batch-fields.ts'
import { batchTag } from './keys.ts'
import { idBytes } from './ids.ts'
import { createInsertInto } from './insert.ts'
import { findQueues } from './locate.ts'
import type { Outbox } from './outbox.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

export function createClusterInsert(
  store: RedisStore,
  outbox: Outbox,
  register: (queues: Iterable<string>) => Promise<void>,
): (jobs: readonly NewJob[]) => Promise<InsertReply> {
  const insertInto = createInsertInto(store, outbox.callOnly('jobs.insert', 'insert'))
  const batch = prepared(store, 'jobs.insert', 'batchApart')
  const { link, keys, where } = store

  async function storedIds(jobs: readonly NewJob[]): Promise<ReadonlySet<JobId>> {
    const looks = [...groupBy(jobs, ({ queue }) => queue)].map(async ([queue, own]) => {
      const ids = own.map(({ id }) => id)
      const bodies = (await link.command('HMGET', keys.queue(queue, 'jobs'), ...ids.map(idBytes))) as readonly unknown[]
      return ids.filter((_, index) => bodies[index] !== null)
    })
    return new Set((await Promise.all(looks)).flat())
  }

  /** What joining would answer; it is asked again when the job joins. */
  async function batchRefusal({ id: jobId, batch: id, insideBatch }: NewJob): Promise<InsertRefusal | null> {
    if (id === undefined) return null
    const record = await batchRecord(store, id)
    if (record === null) return { code: 'BATCH_NOT_FOUND', jobId, batch: id }
    return mayJoin(record, insideBatch === true) ? null : { code: 'BATCH_CLOSED', jobId, batch: id }
  }

  async function findRefusal(fresh: readonly NewJob[], all: readonly NewJob[]): Promise<InsertRefusal | null> {
    const ids = new Set(all.map(({ id }) => id))
    const asked = fresh.flatMap(({ dependsOn = [] }) => dependsOn.map(({ parent }) => parent))
    const found = await findQueues(store, [...new Set(asked.filter((id) => !ids.has(id)))])
    for (const one of fresh) {
      const closed = await batchRefusal(one)
      if (closed !== null) return closed
      const missing = one.dependsOn?.find(({ parent }) => !ids.has(parent) && !found.has(parent))
      if (missing !== undefined) return { code: 'DEPENDENCY_NOT_FOUND', jobId: one.id, parent: missing.parent }
    }
    const circle = findCycle(fresh)
    return circle === null ? null : { code: 'DEPENDENCY_CYCLE', jobId: circle[0]!, circle }
  }

  async function joinBatches(fresh: readonly NewJob[]): Promise<InsertRefusal | null> {
    const joined: NewJob[] = []
    for (const own of groupBy(fresh, ({ batch: id, insideBatch }) => `${id} ${insideBatch === true}`).values()) {
      const { id: jobId, batch: id, insideBatch } = own[0]!
      if (id === undefined) continue
      const said = await batch(batchTag(id), ['join', id, insideBatch === true ? 1 : 0, ...own.map(memberOf)])
      if (said !== 'ok') {
        await leaveBatches(joined)
        return { code: said === 'missing' ? 'BATCH_NOT_FOUND' : 'BATCH_CLOSED', jobId, batch: id }
      }
      joined.push(...own)
    }
    return null
  }

  async function leaveBatches(jobs: readonly NewJob[]): Promise<void> {
    for (const [id, own] of groupBy(jobs, (job) => job.batch)) {
      if (id === undefined) continue
      const said = await batch(batchTag(id), ['drop', id, 0, ...own.map(memberOf)])
      if (said === 'finished') await outbox.fire(id satisfies BatchId)
    }
  }

  /** What was written is in `results`, also when a later queue refuses or fails. */
  async function insertByQueue(jobs: readonly NewJob[], results: Map<number, InsertResult>): Promise<InsertReply> {
    const standsFor = new Map<JobId, JobId>()
    for (const [queue, own] of groupBy([...jobs.entries()], ([, job]) => job.queue)) {
      const reply = await insertInto(
        queue,
        own.map(([, job]) => resolved(job, standsFor)),
      )
      if (!reply.ok) return reply
      for (const [at, [index, { id }]] of own.entries()) {
        const result = reply.results[at]!
        results.set(index, result)
        where.saw(result.id, queue)
        if (result.id !== id) standsFor.set(id, result.id)
      }
    }
    return { ok: true, results: jobs.map((_, index) => results.get(index)!) }
  }

  async function insertAll(jobs: readonly NewJob[]): Promise<InsertReply> {
    if (jobs.length === 0) return { ok: true, results: [] }
    const queues = new Set(jobs.map(({ queue }) => queue))
    const isSimple = jobs.every(({ batch: id, dependsOn }) => id === undefined && dependsOn === undefined)
    const known = isSimple ? new Set<JobId>() : await storedIds(jobs)
    const fresh = isSimple ? [] : jobs.filter(({ id }) => !known.has(id))
    const refusal = (await findRefusal(fresh, jobs)) ?? (await joinBatches(fresh))
    if (refusal !== null) return { ok: false, refusal }
    await register(queues)
    const results = new Map<number, InsertResult>()
    const reply = await insertByQueue(jobs, results)
    // Of those that stand for another job, or were refused; one that was there already may be the work of this very call,
    // repeated while the first was under way.
    const stored = new Set([...results.values()].map(({ id }) => id))
    await leaveBatches(fresh.filter(({ id, batch: own }) => own !== undefined && !stored.has(id)))
    if (!isSimple) for (const queue of queues) await outbox.deliver(queue)
    return reply
  }

  return async (jobs) => {
    const own = jobs.filter(({ ownId }) => ownId === true)
    if (own.length === 0) return insertAll(jobs)
    const found = await findQueues(
      store,
      own.map(({ id }) => id),
    )
    const isElsewhere = ({ id, queue, ownId }: NewJob): boolean => ownId === true && (found.get(id) ?? queue) !== queue
    const reply = await insertAll(jobs.filter((job) => !isElsewhere(job)))
    if (!reply.ok) return reply
    const rest = reply.results.values()
    const results = jobs.map((job) => (isElsewhere(job) ? alreadyThere(job) : rest.next().value!))
    return { ok: true, results }
  }
}

function alreadyThere({ id }: NewJob): InsertResult {
  return { id, outcome: 'already' }
}

function memberOf({ queue, id }: NewJob): string {
  return `${queue} ${id}`
}

function resolved(job: NewJob, standsFor: ReadonlyMap<JobId, JobId>): NewJob {
  if (job.dependsOn === undefined || standsFor.size === 0) return job
  return {
    ...job,
    dependsOn: job.dependsOn.map((one) => ({ ...one, parent: standsFor.get(one.parent) ?? one.parent })),
  }
}

export function groupBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): ReadonlyMap<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const known = groups.get(key)
    if (known === undefined) groups.set(key, [item])
    else known.push(item)
  }
  return groups
}
