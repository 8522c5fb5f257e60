// Everything a store can tell through its ports, as one value, so that a test can say "nothing else changed".
import type { AttemptRow, JobId, LogLine, StoredJob } from '../../src/core/job.ts'
import { LIMITS } from '../../src/core/limits.ts'
import type { BatchRecord } from '../../src/store/batch-store.ts'
import type { Page, PageRequest, QueueCounts } from '../../src/store/job-query.ts'
import type { LimitUse } from '../../src/store/limit-store.ts'
import type { Note } from '../../src/store/note-store.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { QueueRecord } from '../../src/store/queue-store.ts'
import type { ScheduleRecord } from '../../src/store/schedule-store.ts'
import type { WorkerRecord } from '../../src/store/worker-store.ts'
import { place } from './world.ts'

export interface Dump {
  readonly jobs: Readonly<Record<JobId, JobDump>>
  readonly counts: Readonly<Record<string, QueueCounts>>
  readonly queues: Readonly<Record<string, QueueRecord>>
  readonly limits: Readonly<Record<string, LimitUse>>
  readonly batches: Readonly<Record<string, BatchRecord>>
  readonly schedules: Readonly<Record<string, ScheduleRecord>>
  readonly workers: Readonly<Record<string, WorkerRecord>>
  readonly notes: Readonly<Record<string, Note>>
}

export interface JobDump {
  readonly job: StoredJob
  readonly attempts: readonly AttemptRow[]
  readonly logs: readonly LogLine[]
}

const PAGES_MAX = 1_000

export async function dump(backend: Backend, noteSpaces: readonly string[] = []): Promise<Dump> {
  const jobs: Record<JobId, JobDump> = {}
  for (const job of await allPages((page) => backend.query.list({}, page))) {
    const shown = { ...job, status: place(job.status) }
    jobs[job.id] = {
      job: shown,
      attempts: await backend.query.attempts(job.id),
      logs: await backend.query.logs(job.id),
    }
  }
  const queues = keyed(await backend.queues.list(), ({ name }) => name)
  const limits: Record<string, LimitUse> = {}
  for (const queue of Object.keys(queues)) limits[queue] = await backend.limits.inspect(queue)
  const notes: Record<string, Note> = {}
  for (const space of noteSpaces) {
    for (const note of await backend.notes.list(space, LIMITS.pageSizeMax)) notes[`${space}/${note.key}`] = note
  }
  return {
    jobs,
    counts: keyed((await backend.query.counts()).map(withoutDispatched), ({ queue }) => queue),
    queues,
    limits,
    batches: keyed(await allPages((page) => backend.batches.list(page)), ({ id }) => id),
    schedules: keyed(await backend.schedules.list(), ({ name }) => name),
    workers: keyed(await backend.workers.list(), ({ id }) => id),
    notes,
  }
}

export async function allPages<Item>(
  read: (page: PageRequest) => Promise<Page<Item>>,
  limit: number = LIMITS.pageSizeMax,
): Promise<readonly Item[]> {
  const items: Item[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page: Page<Item> = await read({ limit, ...(cursor !== undefined && { cursor }) })
    items.push(...page.items)
    cursor = page.nextCursor
    if (cursor === undefined) return items
  }
  throw new Error(`a listing did not end after ${PAGES_MAX} pages`)
}

/** Without the jobs named, and without what their absence changes: for "nothing but these changed". */
export function withoutJobs(whole: Dump, ...ids: readonly JobId[]): Dump['jobs'] {
  return Object.fromEntries(Object.entries(whole.jobs).filter(([id]) => !ids.includes(id as JobId))) // keys of that very record
}

function keyed<Item>(items: readonly Item[], keyOf: (item: Item) => string): Record<string, Item> {
  return Object.fromEntries(items.map((item) => [keyOf(item), item]))
}

function withoutDispatched({ counts, ...rest }: QueueCounts): QueueCounts {
  return { ...rest, counts: { ...counts, queued: counts.queued + counts.dispatched, dispatched: 0 } }
}
