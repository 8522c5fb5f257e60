// Small keyed records with compare-and-set and expiry: idempotency, metadata of a job kind, history.
import type { JsonText } from '../core/json.ts'

export interface NoteStore {
  get(space: string, key: string): Promise<Note | null>
  /** Writes if the version is still the expected one (0: there is none). Answers the new version, or null. */
  put(write: NoteWrite): Promise<number | null>
  /** Adds to a whole number, from 0 where there is none; answers the sum. */
  increment(space: string, key: string, by: number): Promise<number>
  remove(space: string, key: string): Promise<boolean>
  /** By key, from after the cursor. */
  list(space: string, limit: number, cursor?: string): Promise<readonly Note[]>
  /** Removes expired notes, at most `limit`; answers how many. */
  prune(limit: number): Promise<number>
}

export interface Note {
  readonly key: string
  readonly value: JsonText
  /** Rises with every write and is never used again for this key, not even after the note expired. */
  readonly version: number
  readonly expiresAtMs: number | null
}

export interface NoteWrite {
  readonly space: string
  readonly key: string
  readonly value: JsonText
  /** Absent: whatever is there. */
  readonly expectVersion?: number
  readonly ttlMs?: number
}
