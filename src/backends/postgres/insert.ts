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

const GATED_MS = 10_000

export function createInsert(store: PostgresStore): (jobs: readonly NewJob[]) => Promise<InsertReply> {
  const plain = prepared(
    store,
    'jobs.insert',
    `select gated, refusal, known, rings
     from millrace.insert_plain($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
  )
  const one = prepared(
    store,
    'jobs.insert',
    `select gated, refusal, known, rings from millrace.insert_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
  )
  const each = prepared(store, 'jobs.insert', 'select millrace.insert_jobs($1)')
  const gatedUntilMs = new Map<string, number>()

  async function insertPlain(jobs: readonly NewJob[]): Promise<InsertReply | 'gated'> {
    const topics = [...new Set(jobs.map((job) => job.queue))].map(readyTopic)
    const said = store.doorbell.sayWith(topics)
    const hint = said?.payload ?? null
    const { id, batch } = jobs[0]!
    const isOne = jobs.length === 1 && batch === undefined
    const [row] = await (isOne ? one(...oneValues(jobs[0]!), hint) : plain(...plainValues(jobs), hint))
    const [gated, refusal, known, rings] = row ?? []
    if (gated === 't') return 'gated'
    if (!isAbsent(refusal)) {
      const code = refusal as 'BATCH_NOT_FOUND' | 'BATCH_CLOSED' // the two that the function gives
      return { ok: false, refusal: { code, jobId: id, batch: batch! } }
    }
    const there = new Set(isAbsent(known) ? [] : known.slice(1, -1).split(','))
    for (const topic of topics) {
      if (said?.topics.includes(topic) === true) store.doorbell.ringHere(topic)
      else store.doorbell.ring(topic)
    }
    store.doorbell.ringAll(rings)
    return {
      ok: true,
      results: jobs.map((job): InsertResult => ({ id: job.id, outcome: there.has(job.id) ? 'already' : 'inserted' })),
    }
  }

  async function insertEach(jobs: readonly NewJob[]): Promise<InsertReply> {
    const [row] = await each(jobsJson(jobs))
    const reply = parseInsertReply(row?.[0])
    store.doorbell.ringAll(reply.rings)
    return reply.reply
  }

  return async (jobs) => {
    if (jobs.length === 0) return { ok: true, results: [] }
    if (mayBePlain(jobs, gatedUntilMs, store.clock.monoMs())) {
      const reply = await insertPlain(jobs)
      if (reply !== 'gated') return reply
      for (const { queue } of jobs) gatedUntilMs.set(queue, store.clock.monoMs() + GATED_MS)
    }
    return insertEach(jobs)
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
