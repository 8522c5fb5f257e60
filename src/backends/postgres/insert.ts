// Insert: the plain way for jobs that no gate concerns, the long way for all others. The function for the plain way
// says when a queue has limits; that is remembered for a while, so that such a queue is asked once.
import { findCycle } from '../../core/flow.ts'
import type { Dependency, JobId, NewJob } from '../../core/job.ts'
import type { InsertOutcome, InsertRefusal, InsertReply, InsertResult } from '../../store/ports.ts'
import { readyTopic } from '../../store/wakeups.ts'
import { isPlain, jobsJson, oneValues, plainValues } from './insert-rows.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'
import { textArray } from './wire.ts'

const GATED_MS = 10_000

/** Of the hybrid: the tag per queue under which plain jobs become tokens at once (sql/65_dispatch.sql). */
export type InsertOffers = ReadonlyMap<string, string>

export interface Inserted {
  readonly reply: InsertReply
  /** With offers, of jobs that went the plain way: the columns of the function from `leases` on. */
  readonly minted: Row | null
}

export function createInsert(
  store: PostgresStore,
): (jobs: readonly NewJob[], offers?: InsertOffers) => Promise<Inserted> {
  const plain = prepared(
    store,
    'jobs.insert',
    `select gated, refusal, known, rings, leases, minted_ids, now_ms, default_priorities, default_attempts, news
     from millrace.insert_plain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
  )
  const one = prepared(
    store,
    'jobs.insert',
    `select gated, refusal, known, rings, leases, minted_ids, now_ms, default_priorities, default_attempts, news
     from millrace.insert_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
  )
  const each = prepared(store, 'jobs.insert', 'select millrace.insert_jobs($1)')
  const gatedUntilMs = new Map<string, number>()

  async function insertPlain(jobs: readonly NewJob[], offers?: InsertOffers): Promise<Inserted | Row> {
    const queues = [...new Set(jobs.map((job) => job.queue))]
    // Who is told of a token is told by Redis; an offer that did not hold is told of afterwards.
    const said = store.doorbell.sayWith(queues.filter((queue) => offers?.has(queue) !== true).map(readyTopic))
    const hint = said?.payload ?? null
    const { id, queue, batch } = jobs[0]!
    const isOne = jobs.length === 1 && batch === undefined
    const tags = offers === undefined ? null : textArray(queues.map((name) => offers.get(name) ?? null))
    const [row = []] = await (isOne
      ? one(...oneValues(jobs[0]!), hint, offers?.get(queue) ?? null, offers !== undefined)
      : plain(...plainValues(jobs), hint, tags))
    const [gated, refusal, known, rings] = row
    if (gated === 't') return row
    const minted = offers === undefined ? null : row.slice(4)
    if (!isAbsent(refusal)) {
      const code = refusal as 'BATCH_NOT_FOUND' | 'BATCH_CLOSED' // the two that the function gives
      return { reply: { ok: false, refusal: { code, jobId: id, batch: batch! } }, minted }
    }
    const there = new Set(isAbsent(known) ? [] : known.slice(1, -1).split(','))
    const isAllMinted = minted !== null && isAbsent(minted[5])
    for (const topic of isAllMinted ? [] : queues.map(readyTopic)) {
      if (said?.topics.includes(topic) === true) store.doorbell.ringHere(topic)
      else store.doorbell.ring(topic)
    }
    store.doorbell.ringAll(rings)
    const results = jobs.map((job): InsertResult => {
      return { id: job.id, outcome: there.has(job.id) ? 'already' : 'inserted' }
    })
    return { reply: { ok: true, results }, minted }
  }

  async function insertEach(jobs: readonly NewJob[]): Promise<InsertReply> {
    const [row] = await each(jobsJson(jobs))
    const reply = parseInsertReply(row?.[0])
    store.doorbell.ringAll(reply.rings)
    return reply.reply
  }

  return async (jobs, offers) => {
    if (jobs.length === 0) return { reply: { ok: true, results: [] }, minted: null }
    let minted: Row | null = null
    if (mayBePlain(jobs, gatedUntilMs, store.clock.monoMs())) {
      const inserted = await insertPlain(jobs, offers)
      if ('reply' in inserted) return inserted
      for (const { queue } of jobs) gatedUntilMs.set(queue, store.clock.monoMs() + GATED_MS)
      if (offers !== undefined) minted = inserted.slice(4)
    }
    return { reply: await insertEach(jobs), minted }
  }
}

function mayBePlain(jobs: readonly NewJob[], gatedUntilMs: ReadonlyMap<string, number>, nowMs: number): boolean {
  const first = jobs[0]!
  if (!jobs.every((job) => isPlain(job, first))) return false
  if (gatedUntilMs.size > 0 && jobs.some(({ queue }) => (gatedUntilMs.get(queue) ?? -Infinity) > nowMs)) return false
  return jobs.length === 1 || new Set(jobs.map(({ id }) => id)).size === jobs.length
}

interface ReplyJson {
  readonly results?: readonly (readonly [JobId, InsertOutcome])[]
  readonly refusal?: Exclude<InsertRefusal, { code: 'DEPENDENCY_CYCLE' }> | CycleJson
  readonly rings?: string | null
}

interface CycleJson {
  readonly code: 'DEPENDENCY_CYCLE'
  readonly nodes: readonly { readonly id: JobId; readonly parents: readonly JobId[] | null }[]
}

/** What millrace.insert_jobs answers. */
export function parseInsertReply(text: string | null | undefined): { reply: InsertReply; rings: string | null } {
  const { results = [], refusal, rings = null } = JSON.parse(text ?? '{}') as ReplyJson // written by our own function
  if (refusal === undefined) {
    return { reply: { ok: true, results: results.map(([id, outcome]) => ({ id, outcome })) }, rings }
  }
  return { reply: { ok: false, refusal: refusal.code === 'DEPENDENCY_CYCLE' ? circle(refusal) : refusal }, rings }
}

/** SQL knows that there is a circle; core/flow.ts says which. */
function circle({ nodes }: CycleJson): InsertRefusal {
  const jobs = nodes.map(({ id, parents }) => ({
    id,
    dependsOn: (parents ?? []).map((parent): Dependency => ({ parent, onFailure: 'fail' })),
  }))
  const ids = findCycle(jobs) ?? nodes.map(({ id }) => id)
  return { code: 'DEPENDENCY_CYCLE', jobId: ids[0]!, circle: ids }
}
