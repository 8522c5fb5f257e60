// Pages of jobs, newest first. Two ways, and a cursor stays with the one it came from:
// - `walk`: every queue from its newest entry, merged by the time of enqueue. The cursor is the absolute number of the next
//   entry of each queue in the order of the registry, so that nothing is repeated or skipped whatever moves meanwhile.
// - `index`: statuses of which there are few, such as dead letters, by id. The cursor is the last id.
// One call looks at a bounded number of entries; a page may then hold less than was asked for, and its cursor goes on.
import type { JobId, JobStatus, StoredJob } from '../../core/job.ts'
import type { JobFilter, Page, PageRequest } from '../../store/job-query.ts'
import { badCursor } from './cursor.ts'
import { queueNames } from './locate.ts'
import { matches } from './match.ts'
import type { Place, Reader } from './query.ts'
import { parseReply } from './record.ts'
import type { JobReply } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore, ScriptCall } from './store.ts'

const STRETCH_MIN = 4
/** A stretch of this length keeps the server busy for 3 ms. */
const STRETCH_MAX = 200
const LOOKED_AT_MAX = 10_000
const BYTES_MAX = 4_000_000
const INDEXED_MAX = 10_000
const READ_AT_ONCE = 100

const INDEXED: ReadonlySet<JobStatus> = new Set(['scheduled', 'running', 'completed', 'failed', 'cancelled'])

export function createListing(store: RedisStore, read: Reader) {
  const walkScript = prepared(store, 'query.list', 'jobWalk')
  const indexScript = prepared(store, 'query.list', 'jobIndex')

  return async (filter: JobFilter, page: PageRequest): Promise<Page<StoredJob>> => {
    const all = await queueNames(store)
    const queues = filter.queue === undefined ? all : all.filter((name) => name === filter.queue)
    const { cursor } = page
    if (cursor !== undefined && !/^(w[\d.]*|i[0-9a-f-]{36})$/i.test(cursor)) throw badCursor(cursor)
    if (cursor === undefined || cursor.startsWith('i')) {
      // A listing that began this way goes on this way, also when more have come meanwhile.
      const max = cursor === undefined ? INDEXED_MAX : INDEXED_MAX * 20
      const places = await indexed(indexScript, queues, filter.status, max)
      if (places !== null) return pageByIndex(read, places, filter, page.limit, cursor?.slice(1))
      if (cursor !== undefined) throw badCursor(cursor)
    }
    return pageByWalk(walkScript, store, queues, filter, page)
  }
}

/** Newest first by id; null where some status has no place of its own, or too many jobs. */
async function indexed(
  call: ScriptCall,
  queues: readonly string[],
  statuses: JobFilter['status'],
  max: number,
): Promise<readonly Place[] | null> {
  if (statuses === undefined || statuses.length === 0) return null
  const wanted = [...new Set(statuses)].filter((status) => status !== 'dispatched')
  if (wanted.some((status) => !INDEXED.has(status))) return null
  const found = new Map<string, Place>()
  const lists = await Promise.all(queues.map((queue) => call(queue, [queue, max, ...wanted])))
  for (const [index, ids] of (lists as readonly (readonly JobId[] | null)[]).entries()) {
    if (ids === null || found.size + ids.length > max) return null
    for (const id of ids) found.set(id, { id, queue: queues[index]! })
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
}

async function pageByIndex(
  read: Reader,
  places: readonly Place[],
  filter: JobFilter,
  limit: number,
  cursor: string | undefined,
): Promise<Page<StoredJob>> {
  const left = cursor === undefined ? places : places.filter(({ id }) => id < cursor)
  const items: StoredJob[] = []
  for (let at = 0; at < left.length; at += READ_AT_ONCE) {
    for (const job of await read(left.slice(at, at + READ_AT_ONCE))) {
      if (job === null || !matches(job, filter)) continue
      if (items.length === limit) return { items, nextCursor: `i${items.at(-1)!.id}` }
      items.push(job)
    }
  }
  return { items }
}

/** One queue on its way from its newest job to its oldest. */
interface Walk {
  readonly queue: string
  /** Go on below this number; empty: from the newest; 0: nothing is left. */
  below: string
  stretch: number
  /** Newest first, with the number of each. */
  readonly ahead: { readonly number: number; readonly job: StoredJob }[]
}

async function pageByWalk(
  call: ScriptCall,
  store: RedisStore,
  queues: readonly string[],
  filter: JobFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<StoredJob>> {
  const marks = cursor?.slice(1).split('.')
  const stretch = Math.min(Math.max(Math.ceil((limit + 1) / Math.max(queues.length, 1)), STRETCH_MIN), STRETCH_MAX)
  // A queue that came after the first page has newer jobs only.
  const walks = queues.map((queue, index): Walk => {
    const below = marks === undefined ? '' : (marks[index] ?? '0')
    return { queue, below: below === '' && marks !== undefined ? '0' : below, stretch, ahead: [] }
  })
  let lookedAt = 0
  const items: StoredJob[] = []
  const seen = new Set<string>()
  for (;;) {
    const empty = walks.filter(({ ahead, below }) => ahead.length === 0 && below !== '0')
    if (empty.length > 0) {
      if (lookedAt >= LOOKED_AT_MAX) return { items, nextCursor: cursorOf(walks) }
      lookedAt += empty.reduce((sum, walk) => sum + walk.stretch, 0)
      await Promise.all(empty.map((walk) => advance(call, store, walk, filter)))
      continue
    }
    const next = newestOf(walks)
    if (next === undefined) return { items }
    if (items.length === limit) return { items, nextCursor: cursorOf(walks) }
    const { job } = next.ahead.shift()!
    // A job that was removed and inserted again has two entries.
    if (!seen.has(job.id)) items.push(job)
    seen.add(job.id)
  }
}

async function advance(call: ScriptCall, { where }: RedisStore, walk: Walk, filter: JobFilter): Promise<void> {
  const statuses = filter.status === undefined ? '' : `,${filter.status.join(',')},`
  const args = [walk.queue, walk.below, walk.stretch, BYTES_MAX, statuses]
  const [below, ...rows] = (await call(walk.queue, args)) as [string, ...(readonly [string, JobReply])[]] // as job-walk.lua answers
  walk.below = below
  walk.stretch = Math.min(walk.stretch * 2, STRETCH_MAX)
  for (const [number, reply] of rows) {
    const job = parseReply(reply)
    where.saw(job.id, walk.queue)
    if (matches(job, filter)) walk.ahead.push({ number: Number(number), job })
  }
}

function newestOf(walks: readonly Walk[]): Walk | undefined {
  let newest: Walk | undefined
  for (const walk of walks) {
    const job = walk.ahead[0]?.job
    if (job === undefined) continue
    const best = newest?.ahead[0]?.job
    if (best === undefined || isNewer(job, best)) newest = walk
  }
  return newest
}

function isNewer(job: StoredJob, other: StoredJob): boolean {
  if (job.enqueuedAtMs !== other.enqueuedAtMs) return job.enqueuedAtMs > other.enqueuedAtMs
  return job.id > other.id
}

/** Nothing at the place of a queue that has nothing left. */
function cursorOf(walks: readonly Walk[]): string {
  const marks = walks.map(({ ahead, below }) => {
    const number = ahead[0] === undefined ? Number(below) : ahead[0].number + 1
    return number === 0 ? '' : String(number)
  })
  return `w${marks.join('.')}`
}
