// What a batch may say when it is opened: its callbacks, prepared beforehand, and its metadata.
import type { BatchId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import type { NewBatch } from '../store/batch-store.ts'
import type { Connections } from './connections.ts'
import type { Enqueuer, JobName } from './enqueue.ts'
import { encodeMeta } from './enqueue-options.ts'
import type { Prepared } from './prepare.ts'

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

const CALLBACKS = ['onComplete', 'onSuccess', 'onFailure'] as const

/** A new batch and where it will live. Its callbacks find its id in their metadata. */
export async function planBatch(
  id: BatchId,
  name: string,
  options: BatchOptions,
  enqueuer: Enqueuer,
  connections: Connections,
): Promise<{ readonly batch: NewBatch; readonly connection: string }> {
  checkKnownOptions(options, [...CALLBACKS, 'meta', 'connection'], 'batch()')
  const meta = options.meta === undefined ? null : encodeMeta(options.meta)
  checkName(name, 'batch')
  const { callbacks, connection } = await prepareCallbacks(id, enqueuer, connections, options)
  return { batch: { id, name, meta, callbacks }, connection }
}

async function prepareCallbacks(id: BatchId, enqueuer: Enqueuer, connections: Connections, options: BatchOptions) {
  const prepared = new Map<(typeof CALLBACKS)[number], Prepared>()
  const spans = options.connection === undefined ? [] : [options.connection]
  for (const name of CALLBACKS) {
    const callback = options[name]
    if (callback === undefined) continue
    if (!Array.isArray(callback)) throw invalidOption(name, callback, '[job, input]')
    const one = await enqueuer.prepare(callback[0], callback[1], { meta: { batch: id } })
    prepared.set(name, one)
    spans.push(one.connection)
  }
  const connection = connections.common(spans, 'a batch and its callbacks')
  connections.backend(connection)
  for (const one of prepared.values()) await enqueuer.makeQueue(one)
  const callbacks = {
    complete: prepared.get('onComplete')?.job ?? null,
    success: prepared.get('onSuccess')?.job ?? null,
    failure: prepared.get('onFailure')?.job ?? null,
  }
  return { callbacks, connection }
}
