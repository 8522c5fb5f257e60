// Batches: jobs that are followed together. Open until sealed; callbacks are enqueued by the store in the
// atom that ends the last job, so exactly once.
import { batchProgress } from '../core/batch.ts'
import type { BatchProgress } from '../core/batch.ts'
import { MillraceError } from '../core/errors.ts'
import { FINAL_STATUSES, JOB_STATUSES } from '../core/job.ts'
import type { BatchId, JobStatus, NewJob } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { decodePayload } from '../core/payload.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { BatchRecord } from '../store/batch-store.ts'
import type { Connections } from './connections.ts'
import { DEFAULT_CONNECTION } from './connections.ts'
import type { BulkLine, Enqueuer, JobName } from './enqueue.ts'
import { encodeMeta } from './enqueue-options.ts'
import type { Ending } from './ending.ts'
import { checkBatchId } from './ids.ts'
import { dateOrNull } from './job-view.ts'
import { toPageRequest } from './job-filter.ts'
import type { PageOptions } from './job-filter.ts'
import { checkBulkSize } from './prepare.ts'
import { retryStore } from './store-retry.ts'
import { withinWait } from './wait-options.ts'
import type { WaitOptions } from './wait-options.ts'

/** The types of the jobs are given by `client.ts`; here they are names and values. */
export interface BatchOptions {
  readonly onComplete?: readonly [job: JobName, input: unknown]
  /** When every job completed. */
  readonly onSuccess?: readonly [job: JobName, input: unknown]
  /** When one did not. */
  readonly onFailure?: readonly [job: JobName, input: unknown]
  readonly meta?: { readonly [key: string]: Json }
  /** Default: the one of its callbacks, else the default one. */
  readonly connection?: string
}

export interface BatchInfo {
  readonly id: BatchId
  readonly name: string
  readonly connection: string
  readonly meta: Json | null
  readonly progress: BatchProgress
  readonly sealed: boolean
  readonly cancelled: boolean
  readonly createdAt: Date
  readonly finishedAt: Date | null
}

export interface OpenBatch {
  readonly id: BatchId
  readonly connection: string
}

export interface BatchDesk {
  open(name: string | undefined, options: BatchOptions | undefined): Promise<OpenBatch>
  seal(id: BatchId, connection: string): Promise<void>
  wait(id: BatchId, connection: string, options?: WaitOptions): Promise<BatchInfo>
  info(id: BatchId, connection: string): Promise<BatchInfo>
  get(id: string): Promise<BatchInfo | null>
  list(
    page?: PageOptions & { readonly connection?: string },
  ): Promise<{ readonly items: readonly BatchInfo[]; readonly nextCursor?: string }>
  /** Takes no more jobs and cancels those that are not finished. Answers how many were reached by this call. */
  cancel(id: string, connection?: string): Promise<number>
  /** Open, fill and seal. Everything is checked before the batch is created. */
  whole(name: string, lines: readonly BulkLine[], options: BatchOptions | undefined): Promise<OpenBatch>
}

export interface BatchParts {
  readonly connections: Connections
  readonly runtime: Runtime
  readonly enqueuer: Enqueuer
  readonly ending: Ending
}

const CALLBACKS = ['onComplete', 'onSuccess', 'onFailure'] as const
const LIVE = JOB_STATUSES.filter((status) => !(FINAL_STATUSES as readonly JobStatus[]).includes(status))
const CANCEL_PASSES_MAX = 3
const POLL_MIN_MS = 20
const POLL_MAX_MS = 1_000

export function createBatchDesk({ connections, runtime, enqueuer, ending }: BatchParts): BatchDesk {
  const batchesOn = (connection: string) => connections.backend(connection).batches

  async function find(id: BatchId, asked?: string): Promise<{ connection: string; record: BatchRecord } | null> {
    for (const connection of connections.asked(asked)) {
      const record = await retryStore(runtime, () => batchesOn(connection).get(id))
      if (record !== null) return { connection, record }
    }
    return null
  }

  async function open(name = 'batch', options: BatchOptions = {}): Promise<OpenBatch> {
    checkKnownOptions(options, [...CALLBACKS, 'meta', 'connection'], 'batch()')
    const meta = options.meta === undefined ? null : encodeMeta(options.meta)
    const { callbacks, connection } = await prepareCallbacks(enqueuer, connections, options)
    const id = runtime.newId() as BatchId // newId mints UUIDs
    const batch = { id, name: checkName(name, 'batch'), meta, callbacks }
    await retryStore(runtime, () => batchesOn(connection).create(batch))
    return { id, connection }
  }

  async function info(id: BatchId, connection: string): Promise<BatchInfo> {
    const found = await find(id, connection)
    if (found === null) throw batchNotFound(id)
    return viewBatch(found.record, connection)
  }

  async function seal(id: BatchId, connection: string): Promise<void> {
    if (!(await retryStore(runtime, () => batchesOn(connection).seal(id)))) throw batchNotFound(id)
  }

  return {
    open,
    seal,
    info,
    async wait(id, connection, options = {}) {
      return withinWait(runtime, options, `batch ${id}`, async (signal) => {
        for (let waitMs = POLL_MIN_MS; ; waitMs = Math.min(waitMs * 1.5, POLL_MAX_MS)) {
          const batch = await info(id, connection)
          if (batch.finishedAt !== null) return batch
          await sleep(runtime.clock, waitMs * (0.75 + runtime.random() / 2), signal)
          signal.throwIfAborted()
        }
      })
    },
    async get(id) {
      const found = await find(checkBatchId(id))
      return found && viewBatch(found.record, found.connection)
    },
    async list({ connection = DEFAULT_CONNECTION, ...page } = {}) {
      const { items, nextCursor } = await batchesOn(connection).list(toPageRequest(page))
      const batches = items.map((record) => viewBatch(record, connection))
      return { items: batches, ...(nextCursor !== undefined && { nextCursor }) }
    },
    async cancel(id, asked) {
      const found = await find(checkBatchId(id), asked)
      if (found === null) throw batchNotFound(checkBatchId(id))
      const { connection, record } = found
      await retryStore(runtime, () => batchesOn(connection).cancel(record.id))
      return cancelJobs(record.id, connection, connections, ending)
    },
    async whole(name, lines, options) {
      // Middleware runs once, with the real call; this first look only refuses what could not be written.
      if (!Array.isArray(lines)) throw invalidOption('enqueueBatch()', lines, 'an array of [job, input, options?]')
      checkBulkSize(lines.length)
      const spans = new Set<string>()
      for (const [job, input, lineOptions] of lines)
        spans.add((await enqueuer.prepare(job, input, lineOptions)).connection)
      const connection = options?.connection ?? connections.common(spans, `batch ${name}`)
      const batch = await open(name, { ...options, connection })
      const joined = lines.map(([job, input, lineOptions]) => [job, input, { ...lineOptions, batch }] as const)
      try {
        await enqueuer.many(joined, `batch ${name}`)
      } catch (error) {
        // Nothing was written, or nobody knows: an empty open batch would stay for ever.
        await batchesOn(batch.connection)
          .cancel(batch.id)
          .catch(() => false)
        throw error
      }
      await seal(batch.id, batch.connection)
      return batch
    },
  }
}

async function prepareCallbacks(enqueuer: Enqueuer, connections: Connections, options: BatchOptions) {
  const prepared = new Map<(typeof CALLBACKS)[number], NewJob>()
  const spans = options.connection === undefined ? [] : [options.connection]
  for (const name of CALLBACKS) {
    const callback = options[name]
    if (callback === undefined) continue
    if (!Array.isArray(callback)) throw invalidOption(name, callback, '[job, input]')
    const { job, connection } = await enqueuer.prepare(callback[0], callback[1])
    prepared.set(name, job)
    spans.push(connection)
  }
  const connection = connections.common(spans, 'a batch and its callbacks')
  connections.backend(connection)
  const callbacks = {
    complete: prepared.get('onComplete') ?? null,
    success: prepared.get('onSuccess') ?? null,
    failure: prepared.get('onFailure') ?? null,
  }
  return { callbacks, connection }
}

/** The store takes no more jobs, so the list only shrinks; should this process die, maintenance goes on. */
async function cancelJobs(
  batch: BatchId,
  connection: string,
  connections: Connections,
  ending: Ending,
): Promise<number> {
  const { query } = connections.backend(connection)
  let reached = 0
  for (let pass = 0; pass < CANCEL_PASSES_MAX; pass++) {
    let left = 0
    let cursor: string | undefined
    do {
      const request = { limit: LIMITS.pageSizeMax, ...(cursor !== undefined && { cursor }) }
      const page = await query.list({ batch, status: LIVE }, request)
      const refs = page.items.filter((job) => !job.cancelRequested).map(({ id }) => ({ id, connection }))
      const answers = await ending.cancel(refs, 'its batch was cancelled')
      reached += answers.filter((answer) => answer === 'cancelled' || answer === 'requested').length
      left += refs.length
      cursor = page.nextCursor
    } while (cursor !== undefined)
    if (left === 0) break
  }
  return reached
}

function viewBatch(record: BatchRecord, connection: string): BatchInfo {
  return {
    id: record.id,
    name: record.name,
    connection,
    meta: record.meta === null ? null : decodePayload(record.meta),
    sealed: record.sealed,
    cancelled: record.cancelled,
    createdAt: new Date(record.createdAtMs),
    finishedAt: dateOrNull(record.finishedAtMs),
    progress: batchProgress(record.counts),
  }
}

function batchNotFound(id: BatchId): MillraceError {
  const message = `there is no batch ${id}: create it first, or correct the id`
  return new MillraceError('BATCH_NOT_FOUND', message, { details: { batch: id } })
}
