// Reading the world. Pages are bounded; a filter walks the jobs from the newest, which is good enough for
// tests and tools and never touches the hot path.
import { EDGES } from '../../core/edges.ts'
import { MillraceError } from '../../core/errors.ts'
import type { AttemptRow, JobStatus } from '../../core/job.ts'
import type { Json } from '../../core/json.ts'
import { LIMITS } from '../../core/limits.ts'
import { laneOf } from '../../core/priority.ts'
import type { JobFilter, JobQuery, LaneDepths, Page, PageRequest, QueueCounts } from '../../store/job-query.ts'
import type { StoredJob } from '../../core/job.ts'
import { snapshot } from './record.ts'
import type { JobRecord } from './record.ts'
import type { World } from './world.ts'

export function memoryQuery(world: World): JobQuery {
  return {
    get: (ids) =>
      world.run(() =>
        ids.map((id) => {
          const record = world.jobs.get(id)
          return record === undefined ? null : snapshot(record)
        }),
      ),
    list: (filter, page) => world.run(() => listJobs(world, filter, page)),
    counts: (queue) => world.run(() => countJobs(world, queue)),
    lanes: (queue) => world.run(() => countLanes(world, queue)),
    attempts: (id) => world.run(() => attemptsOf(world.jobs.get(id))),
    logs: (id) => world.run(() => [...(world.jobs.get(id)?.logs ?? [])]),
  }
}

function listJobs(world: World, filter: JobFilter, page: PageRequest): Page<StoredJob> {
  const limit = Math.min(page.limit, LIMITS.pageSizeMax)
  const items: StoredJob[] = []
  if (page.cursor !== undefined && !/^\d{1,15}$/.test(page.cursor)) throw badCursor(page.cursor)
  let index = (page.cursor === undefined ? world.order.length : indexOf(world, Number(page.cursor))) - 1
  for (; index >= 0; index--) {
    const record = world.order[index]
    if (record === undefined || record.erased || !matches(record, filter)) continue
    if (items.length === limit) return { items, nextCursor: String(record.no + 1) }
    items.push(snapshot(record))
  }
  return { items }
}

export function badCursor(cursor: string): MillraceError {
  const message = `${JSON.stringify(cursor.slice(0, 40))} is not a cursor of an earlier page: pass \`nextCursor\` as it was given`
  return new MillraceError('INVALID_OPTION', message, { details: { option: 'cursor' } })
}

/** Where the record with this number is, or would be, in the order of insert. */
function indexOf(world: World, no: number): number {
  let [low, high] = [0, world.order.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((world.order[middle]?.no ?? Infinity) < no) low = middle + 1
    else high = middle
  }
  return low
}

function matches(record: JobRecord, filter: JobFilter): boolean {
  const { finishedAtMs, enqueuedAtMs } = record
  if (filter.queue !== undefined && record.queue !== filter.queue) return false
  if (filter.name !== undefined && record.name !== filter.name) return false
  if (filter.status !== undefined && !filter.status.includes(record.status)) return false
  if (filter.tag !== undefined && !record.tags.includes(filter.tag)) return false
  if (filter.batch !== undefined && record.batch !== filter.batch) return false
  if (filter.worker !== undefined && record.worker !== filter.worker) return false
  if (filter.schedule !== undefined && record.schedule?.name !== filter.schedule) return false
  if (filter.group !== undefined && record.group !== filter.group) return false
  if (filter.enqueuedFromMs !== undefined && enqueuedAtMs < filter.enqueuedFromMs) return false
  if (filter.enqueuedUntilMs !== undefined && enqueuedAtMs >= filter.enqueuedUntilMs) return false
  if (filter.finishedFromMs !== undefined && (finishedAtMs ?? -Infinity) < filter.finishedFromMs) return false
  if (filter.finishedUntilMs !== undefined && (finishedAtMs ?? Infinity) >= filter.finishedUntilMs) return false
  if (filter.errorText !== undefined && !errorHas(record, filter.errorText)) return false
  if (filter.payload !== undefined && !payloadHas(record.payload, filter.payload)) return false
  return true
}

function errorHas({ lastError }: JobRecord, text: string): boolean {
  if (lastError === null) return false
  return [lastError.name, lastError.message, lastError.code ?? ''].join('\n').toLowerCase().includes(text.toLowerCase())
}

function payloadHas(payload: string, { path, equals }: NonNullable<JobFilter['payload']>): boolean {
  let at = JSON.parse(payload) as Json // written by our own codec
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return false
    at = (at as Readonly<Record<string, Json>>)[part] ?? null
  }
  return JSON.stringify(at) === JSON.stringify(equals)
}

function countLanes(world: World, queue: string): LaneDepths {
  const state = world.queues.get(queue)
  if (state === undefined) return [0, 0, 0]
  const depths = state.ready.depths()
  if (state.counts.dispatched === 0) return depths
  for (const record of world.jobs.values()) {
    const isWaiting = record.queue === queue && record.status === 'dispatched'
    if (isWaiting) depths[laneOf(record.priority, state.config.lanes)] += 1
  }
  return depths
}

function countJobs(world: World, only: string | undefined): readonly QueueCounts[] {
  const queues = [...world.queues].filter(([name]) => only === undefined || name === only)
  return queues.map(([queue, state]) => ({
    queue,
    counts: { ...state.counts } satisfies Record<JobStatus, number>,
    oldestReadyAtMs: state.ready.oldestReadyAtMs(),
  }))
}

function attemptsOf(record: JobRecord | undefined): readonly AttemptRow[] {
  if (record === undefined) return []
  const ended = record.attempts ?? []
  if (!(EDGES.complete.from as readonly JobStatus[]).includes(record.status)) return [...ended]
  const current: AttemptRow = {
    jobId: record.id,
    attempt: record.attemptCount + 1,
    lease: record.lease,
    status: 'attempting',
    worker: record.worker,
    startedAtMs: record.startedAtMs,
    finishedAtMs: null,
    durationMs: null,
    error: null,
    note: null,
  }
  return [...ended, current]
}
