// Deduplication: what a unique key is and how long a job holds it. The store keeps the holds and
// applies `holdsKey` with every change of status; for-a-time holds end by the clock alone.

import { createHash } from 'node:crypto'
import type { JobStatus } from './job.ts'
import { canonicalJson, type Json } from './json.ts'

export type UniqueMode = 'until-started' | 'until-finished' | 'for-a-time'

/** What a second enqueue does while the key is held: nothing, swap the payload, or push the start back. */
export type OnDuplicate = 'keep' | 'replace' | 'debounce'

export interface UniqueHold {
  readonly key: string
  readonly mode: UniqueMode
  /** How long a for-a-time hold lasts, from the enqueue. */
  readonly windowMs: number
  readonly onDuplicate: OnDuplicate
}

/** The key of a job that is the same work as another: SHA-256 of name, NUL, canonical JSON. */
export function contentKey(name: string, payload: Json): string {
  return createHash('sha256')
    .update(`${name}\0${canonicalJson(payload)}`)
    .digest('hex')
}

/** Does a job in this status hold its key? A for-a-time hold does not depend on the status. */
export function holdsKey(mode: UniqueMode, status: JobStatus): boolean {
  switch (status) {
    case 'scheduled':
    case 'queued':
    case 'blocked':
      return mode !== 'for-a-time'
    case 'dispatched':
    case 'running':
      return mode === 'until-finished'
    case 'completed':
    case 'failed':
    case 'cancelled':
      return false
  }
}
