// Batches: jobs that are followed together. Open until sealed; callbacks are enqueued by the store in the
// atom that ends the last job, so exactly once.
import { batchProgress } from '../core/batch.ts'
import type { BatchProgress } from '../core/batch.ts'
import { MillraceError } from '../core/errors.ts'
import type { BatchId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { invalidOption } from '../core/names.ts'
import { decodePayload } from '../core/payload.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { BatchRecord } from '../store/batch-store.ts'
import { cancelBatchJobs } from './batch-cancel.ts'
import { planBatch } from './batch-options.ts'
import type { BatchOptions } from './batch-options.ts'
import type { Connections } from './connections.ts'
import { DEFAULT_CONNECTION } from './connections.ts'
import type { BulkLine, Enqueuer, JobName } from './enqueue.ts'
import type { Ending } from './ending.ts'
import { checkBatchId } from './ids.ts'
import { dateOrNull } from './job-view.ts'
import { toPageRequest } from './job-filter.ts'
import type { PageOptions } from './job-filter.ts'
import { checkBulkSize } from './prepare.ts'
import { retryStore } from './store-retry.ts'
import { finishedTopic } from '../store/wakeups.ts'
import { withinWait } from './wait-options.ts'
import type { WaitOptions } from './wait-options.ts'

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
    const id = runtime.newId() as BatchId // newId mints UUIDs
    const { batch, connection } = await planBatch(id, name, options, enqueuer, connections)
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
    wait: (id, connection, options = {}) =>
      withinWait(runtime, options, `batch ${id}`, (signal) =>
        untilFinished(
          runtime,
          signal,
          (onHint) => connections.backend(connection).wakeups.listen([finishedTopic(id)], onHint),
          () => info(id, connection),
        ),
      ),
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
      return cancelBatchJobs(record.id, connection, connections, ending)
    },
    async whole(name, lines, options) {
      const common = connectionOf(lines, enqueuer, connections, name)
      const batch = await open(name, { ...options, connection: options?.connection ?? common })
      const store = batchesOn(batch.connection)
      try {
        await enqueuer.many(
          lines.map(([job, input, own]) => [job, input, { ...own, batch }]),
          'a batch',
        )
      } catch (error) {
        // All or nothing: the empty batch goes; one whose jobs went in although nobody was told is cancelled.
        await retryStore(runtime, async () => (await store.discard(batch.id)) || store.cancel(batch.id)).catch(
          () => false,
        )
        throw error
      }
      await seal(batch.id, batch.connection)
      return batch
    },
  }
}

/** Where the jobs of all lines live. What they say is checked when they are enqueued, after the middleware. */
function connectionOf(lines: readonly BulkLine[], enqueuer: Enqueuer, connections: Connections, name: string): string {
  if (!Array.isArray(lines)) throw invalidOption('enqueueBatch()', lines, 'an array of [job, input, options?]')
  checkBulkSize(lines.length)
  const spans = lines.map((line: unknown, index) => {
    if (!Array.isArray(line)) throw invalidOption(`enqueueBatch()[${index}]`, line, '[job, input, options?]')
    return enqueuer.connectionOf(line[0] as JobName) // checked there
  })
  return connections.common(spans, `batch ${name}`)
}

async function untilFinished(
  runtime: Runtime,
  signal: AbortSignal,
  listen: (onHint: () => void) => () => void,
  read: () => Promise<BatchInfo>,
): Promise<BatchInfo> {
  let hint = new AbortController()
  const stopListening = listen(() => hint.abort())
  try {
    for (let waitMs = POLL_MIN_MS; ; waitMs = Math.min(waitMs * 1.5, POLL_MAX_MS)) {
      const batch = await read()
      if (batch.finishedAt !== null) return batch
      await sleep(runtime.clock, waitMs * (0.75 + runtime.random() / 2), AbortSignal.any([signal, hint.signal]))
      hint = new AbortController()
      signal.throwIfAborted()
    }
  } finally {
    stopListening()
  }
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
