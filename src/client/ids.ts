// Ids that come from a caller: shape checked before any store sees them, then branded.
import type { BatchId, JobId } from '../core/job.ts'
import { invalidOption } from '../core/names.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** A job as callers name it: its id, or the handle they got for it. */
export type JobRef = string | { readonly id: JobId; readonly connection?: string }

export function checkJobId(value: unknown, what = 'job id'): JobId {
  // The one place where text becomes a job id: its shape was checked.
  return checkUuid(value, what) as JobId
}

export function checkBatchId(value: unknown, what = 'batch id'): BatchId {
  // The one place where text becomes a batch id: its shape was checked.
  return checkUuid(value, what) as BatchId
}

export function checkJobRef(ref: unknown, what: string): { readonly id: JobId; readonly connection?: string } {
  if (typeof ref !== 'object' || ref === null || !('id' in ref)) return { id: checkJobId(ref, what) }
  const connection = 'connection' in ref && typeof ref.connection === 'string' ? { connection: ref.connection } : {}
  return { id: checkJobId(ref.id, what), ...connection }
}

function checkUuid(value: unknown, what: string): string {
  if (typeof value === 'string' && UUID.test(value)) return value.toLowerCase()
  throw invalidOption(what, value, 'a UUID')
}
