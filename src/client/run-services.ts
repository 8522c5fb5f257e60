// What a running handler may ask of Millrace: enqueue from inside, results of its parents, idempotent
// work, metadata of its kind. Built per run, so everything here is lazy and cheap.
import type { ContextEnqueueOptions, KindMetadata, ParentResult, RunServices } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import { isFinal } from '../core/job.ts'
import type { ClaimedJob, JobId, StoredJob } from '../core/job.ts'
import { decodePayload } from '../core/payload.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import type { Enqueuer } from './enqueue.ts'
import type { EnqueueOptions } from './enqueue-options.ts'
import { createIdempotent } from './idempotency.ts'
import { createMetadata } from './metadata.ts'
import type { Extras } from './prepare.ts'
import { retryStore } from './store-retry.ts'

export type RunServicesFactory = (claimed: ClaimedJob, isLive?: () => boolean) => RunServices

export interface RunServicesParts {
  readonly runtime: Runtime
  readonly enqueuer: Enqueuer
  /** The connection that the jobs were claimed from. */
  readonly backend: Pick<Backend, 'query' | 'notes'>
}

export function createRunServices({ runtime, enqueuer, backend }: RunServicesParts): RunServicesFactory {
  const metadataByKind = new Map<string, KindMetadata>()

  function metadataOf(kind: string): KindMetadata {
    const known = metadataByKind.get(kind)
    if (known !== undefined) return known
    const metadata = createMetadata(backend.notes, runtime, kind)
    metadataByKind.set(kind, metadata)
    return metadata
  }

  return (claimed, isLive = () => true) => ({
    enqueue: async (job, ...[input, options]) => {
      const [own, extras] = fromInside(claimed, options)
      const { id, duplicate } = await enqueuer.one(job, input, own, extras)
      return { id, duplicate }
    },
    async parents() {
      if (claimed.parents.length === 0) return []
      const jobs = await retryStore(runtime, () => backend.query.get(claimed.parents))
      return claimed.parents.map((id, index) => parentResult(id, jobs[index] ?? null))
    },
    idempotent: (key, fn, options) => {
      const { id: jobId, lease, name: kind, timeoutMs: ttlMs } = claimed
      return createIdempotent(backend.notes, runtime, { jobId, lease, kind, ttlMs, isLive })(key, fn, options)
    },
    get metadata() {
      return metadataOf(claimed.name)
    },
  })
}

/** A job enqueued by a running job of a batch may join that batch even when it is sealed. */
function fromInside(claimed: ClaimedJob, options: ContextEnqueueOptions = {}): readonly [EnqueueOptions, Extras] {
  const { batch, ...rest } = options
  if (batch === undefined) return [rest, {}]
  if (batch !== 'same') return [{ ...rest, batch }, batch === claimed.batch ? { insideBatch: true } : {}]
  if (claimed.batch === null) {
    const message = `batch is 'same', but job ${claimed.id} (${claimed.name}) belongs to no batch`
    throw new MillraceError('INVALID_OPTION', message, { details: { option: 'batch' } })
  }
  return [{ ...rest, batch: claimed.batch }, { insideBatch: true }]
}

function parentResult(id: JobId, job: StoredJob | null): ParentResult {
  if (job === null) return { id, name: null, status: 'removed', result: null }
  // A parent that is live again was replayed after it had failed, which its child was told to accept.
  const status = isFinal(job.status) ? job.status : 'failed'
  return { id, name: job.name, status, result: job.result === null ? null : decodePayload(job.result) }
}
