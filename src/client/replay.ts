// Replaying one dead letter: as the same job, or as a new job linked both ways. Both may be repeated after
// a lost reply: the first is guarded by status and lease, the second has an id that follows from the failure itself.
import { createHash } from 'node:crypto'
import { decideMarkReplayed, decideReplay } from '../core/decide.ts'
import type { JobId, NewJob, StoredJob } from '../core/job.ts'
import type { Verdict } from '../core/transition.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { retryStore } from './store-retry.ts'

/** The same jobs run again, with fresh attempts. Verdicts in the order asked. */
export function replaySame(
  backend: Backend,
  runtime: Runtime,
  failed: readonly Pick<StoredJob, 'id' | 'lease'>[],
  actor: string,
): Promise<readonly Verdict[]> {
  if (failed.length === 0) return Promise.resolve([])
  const transitions = failed.map(({ id, lease }) => decideReplay(id, actor, lease))
  return retryStore(runtime, () => backend.jobs.apply(transitions))
}

/** A copy of each runs; the dead letters stay and name it. The unique key, batch and parents stay with the old job. */
export async function replayCopies(
  backend: Backend,
  runtime: Runtime,
  failed: readonly StoredJob[],
  actor: string,
): Promise<readonly JobId[]> {
  if (failed.length === 0) return []
  const copies = failed.map(copyOf)
  await retryStore(runtime, () => backend.jobs.insert(copies))
  // Marked once: a repeated call finds the link and writes no second audit row.
  const unmarked = failed.flatMap((job, index) => {
    const into = copies[index]!.id
    return job.replayedInto === into ? [] : [decideMarkReplayed(job.id, into, actor)]
  })
  if (unmarked.length > 0) await retryStore(runtime, () => backend.jobs.apply(unmarked))
  return copies.map(({ id }) => id)
}

/** Has this failure been replayed as a new job already? */
export function wasCopied(job: StoredJob): boolean {
  return job.replayedInto !== null && job.replayedInto === copyId(job)
}

function copyOf(job: StoredJob): NewJob {
  return {
    id: copyId(job),
    queue: job.queue,
    name: job.name,
    payload: job.payload,
    timeoutMs: job.timeoutMs,
    priority: job.priority,
    maxAttempts: job.maxAttempts,
    ...(job.tags.length > 0 && { tags: job.tags }),
    ...(job.meta !== null && { meta: job.meta }),
    ...(job.group !== null && { group: job.group }),
    ...(job.limitKey !== null && { limitKey: job.limitKey }),
    replayOf: job.id,
  }
}

/** A UUIDv7 whose time is that of the failure and whose other bits hash it: one failure, one copy. */
function copyId(job: StoredJob): JobId {
  const failedAtMs = job.finishedAtMs ?? job.updatedAtMs
  const hash = createHash('sha256').update(`replay\0${job.id}\0${failedAtMs}`).digest('hex')
  const time = Math.max(0, Math.floor(failedAtMs)).toString(16).padStart(12, '0')
  const variant = '89ab'[Number.parseInt(hash.slice(0, 1), 16) % 4]
  const parts = [
    time.slice(0, 8),
    time.slice(8, 12),
    `7${hash.slice(1, 4)}`,
    `${variant}${hash.slice(4, 7)}`,
    hash.slice(7, 19),
  ]
  return parts.join('-') as JobId // built as a UUID above
}
