// Reading. Ids are looked up where they were seen last; listings walk each queue from its newest job, or take the ids of
// one status from the place where such jobs are kept. Never on the hot path; every script looks at a bounded stretch.
import type { AttemptError } from '../../core/attempt-error.ts'
import { MillraceError } from '../../core/errors.ts'
import { JOB_STATUSES } from '../../core/job.ts'
import type { AttemptRow, JobId, JobStatus, LogLine, StoredJob } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { JobQuery, QueueCounts } from '../../store/job-query.ts'
import { createListing } from './listing.ts'
import { findQueues, queueNames } from './locate.ts'
import { fieldsOf, parseReply } from './record.ts'
import type { JobReply } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

/** Jobs of one script. */
const READ_MAX = 200
/** Of those that have to be looked for: each costs a look into every queue. */
const SEARCH_MAX = 20
/** How far into a lane to look for its first ready job. */
const LANE_LOOK_MAX = 1_000

export function redisQuery(store: RedisStore): JobQuery {
  const counts = prepared(store, 'query.counts', 'queueCounts')
  const readTrail = prepared(store, 'query.attempts', 'jobTrail')
  const read = createReader(store)
  const list = createListing(store, read)

  /** The job and the lines of its trail; null where there is no such job. */
  async function trail(id: JobId, which: 'attempts' | 'logs') {
    const { link, where } = store
    const ask = async (queue: string, search: boolean) =>
      (await readTrail(queue, [search ? 1 : 0, queue, id, which])) as readonly [JobReply, readonly string[]] | null // as job-trail.lua answers
    if (!link.isCluster) return ask(where.of(id), true)
    const guess = where.of(id)
    const found = guess === '' ? null : await ask(guess, false)
    if (found !== null) return found
    const queue = (await findQueues(store, [id])).get(id)
    return queue === undefined ? null : ask(queue, false)
  }

  return {
    get: (ids) => readMany(store, read, ids),
    async list(filter, page) {
      if (filter.payload !== undefined) {
        throw new MillraceError('NOT_SUPPORTED', 'Redis does not search payloads: filter by name, tag or group instead')
      }
      return list(filter, { ...page, limit: Math.min(page.limit, LIMITS.pageSizeMax) })
    },
    async counts(queue) {
      const names = queue === undefined ? await queueNames(store) : [queue]
      const rows = await Promise.all(names.map((name) => counts(name, [name, LANE_LOOK_MAX, ...JOB_STATUSES])))
      return rows.flatMap((row, index) => (row === null ? [] : [parseCounts(names[index]!, row as readonly string[])])) // as queue-counts.lua answers
    },
    async lanes(queue) {
      const depth = async (lane: string): Promise<number> => {
        // Entries wait in the second list after a change of lanes.
        const parts = [lane, `${lane}:old`].map((part) => store.link.command('LLEN', store.keys.queue(queue, part)))
        return (await Promise.all(parts)).reduce<number>((sum, length) => sum + Number(length), 0)
      }
      return [await depth('high'), await depth('normal'), await depth('low')]
    },
    async attempts(id) {
      const found = await trail(id, 'attempts')
      return found === null ? [] : attemptsOf(...found)
    },
    async logs(id) {
      const found = await trail(id, 'logs')
      return found === null ? [] : found[1].map((line) => JSON.parse(line) as LogLine) // written from one
    },
  }
}

/** Where a job is believed to be; an empty queue: nobody knows. */
export interface Place {
  readonly queue: string
  readonly id: JobId
}

/**
 * Jobs by their places, in order; null where there is none. One atom up to READ_MAX, on a Cluster one for each queue. With `search`
 * those that are somewhere else are found too, but not on a Cluster.
 */
export type Reader = (
  places: readonly Place[],
  options?: { readonly search?: boolean },
) => Promise<readonly (StoredJob | null)[]>

function createReader(store: RedisStore): Reader {
  const { link, where } = store
  const read = prepared(store, 'query.get', 'jobRead')

  async function readOnce(places: readonly Place[], search: boolean): Promise<readonly (StoredJob | null)[]> {
    const args = [search ? 1 : 0, ...places.flatMap(({ queue, id }) => [queue, id])]
    const replies = (await read(places[0]?.queue ?? '', args)) as readonly (JobReply | null)[] // as job-read.lua answers
    return replies.map((reply) => {
      if (reply === null) return null
      where.saw(reply[1], reply[0])
      return parseReply(reply)
    })
  }

  return async (places, { search = false } = {}) => {
    const found = new Map<Place, StoredJob | null>()
    const size = search && places.some(({ queue }) => queue === '') ? SEARCH_MAX : READ_MAX
    for (const group of groupsOf(places, link.isCluster)) {
      for (let at = 0; at < group.length; at += size) {
        const chunk = group.slice(at, at + size)
        const jobs = await readOnce(chunk, search && !link.isCluster)
        for (const [index, place] of chunk.entries()) found.set(place, jobs[index] ?? null)
      }
    }
    return places.map((place) => found.get(place) ?? null)
  }
}

function groupsOf(places: readonly Place[], perQueue: boolean): readonly (readonly Place[])[] {
  if (!perQueue) return [places]
  const groups = new Map<string, Place[]>()
  for (const place of places) groups.set(place.queue, [...(groups.get(place.queue) ?? []), place])
  return [...groups.values()]
}

async function readMany(
  store: RedisStore,
  read: Reader,
  ids: readonly JobId[],
): Promise<readonly (StoredJob | null)[]> {
  const { link, where } = store
  const found = new Map<JobId, StoredJob>()
  const readAt = async (places: readonly Place[], search: boolean): Promise<void> => {
    if (places.length === 0) return
    for (const job of await read(places, { search })) if (job !== null) found.set(job.id, job)
  }
  const places = [...new Set(ids)].map((id) => ({ id, queue: where.of(id) }))
  if (link.isCluster) {
    await readAt(
      places.filter(({ queue }) => queue !== ''),
      false,
    )
    const unknown = places.map(({ id }) => id).filter((id) => !found.has(id))
    const elsewhere = [...(await findQueues(store, unknown))]
    await readAt(
      elsewhere.map(([id, queue]) => ({ id, queue })),
      false,
    )
  } else await readAt(places, true)
  return ids.map((id) => found.get(id) ?? null)
}

function parseCounts(queue: string, row: readonly string[]): QueueCounts {
  const oldest = row[JOB_STATUSES.length] ?? ''
  const counts = Object.fromEntries(JOB_STATUSES.map((status, index) => [status, Number(row[index])]))
  return {
    queue,
    counts: counts as Record<JobStatus, number>, // one entry for each status
    oldestReadyAtMs: oldest === '' ? null : Number(oldest),
  }
}

interface StoredRow extends Omit<AttemptRow, 'jobId' | 'error'> {
  readonly error?: AttemptError | null
}

/** The rows that were written, the one that a plain completion leaves out, and the run that is going on. */
function attemptsOf(reply: JobReply, lines: readonly string[]): readonly AttemptRow[] {
  const job = parseReply(reply)
  const own = {
    jobId: job.id,
    worker: job.worker,
    lease: job.lease,
    startedAtMs: job.startedAtMs,
    error: null,
    note: null,
  }
  const rows: AttemptRow[] = lines.map((line) => {
    const row = JSON.parse(line) as StoredRow // written by scripts from core/apply.ts auditRow
    return { ...row, jobId: job.id, error: row.error ?? null, note: row.note ?? null }
  })
  const { status, startedAtMs, finishedAtMs, attemptCount } = job
  if (status === 'completed' && !fieldsOf(reply[3]).has('rows')) {
    const durationMs = startedAtMs === null || finishedAtMs === null ? null : finishedAtMs - startedAtMs
    rows.push({ ...own, attempt: attemptCount, status: 'success', finishedAtMs, durationMs })
  }
  if (status === 'running') {
    rows.push({ ...own, attempt: attemptCount + 1, status: 'attempting', finishedAtMs: null, durationMs: null })
  }
  return rows
}
