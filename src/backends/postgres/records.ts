// A row of millrace.job_records as the job it is.
import type { AttemptError } from '../../core/attempt-error.ts'
import type { BatchId, JobId, JobStatus, LeaseNumber, StoredJob, WaitReason, WorkerId } from '../../core/job.ts'
import { GATE, WAITS_FOR, wordOf } from './words.ts'
import { isAbsent, msOf } from './row.ts'
import type { Row } from './row.ts'

/** In the order `parseRecord` reads them; `r` is the row of job_records. */
export const RECORD_COLUMNS = `r.id, r.queue_name, r.name, r.payload::text, r.priority, r.status, r.attempt_count, r.max_attempts,
  r.crash_count, r.timeout_ms, millrace.ms_of(r.run_at), millrace.ms_of(r.enqueued_at), millrace.ms_of(r.updated_at),
  millrace.ms_of(r.started_at), millrace.ms_of(r.finished_at), r.last_error::text, r.result::text, r.progress::text,
  (select w.id from millrace.workers w where w.no = r.worker_no), r.lease, r.batch_id, to_json(r.tags)::text, r.meta::text,
  r.group_key, r.limit_key, r.unique_key,
  (select json_agg(p.parent order by p.position)::text from millrace.job_parents p where p.child = r.id),
  r.schedule_name, millrace.ms_of(r.schedule_tick), r.waits_for, r.gate, r.cancel_requested, r.replay_of,
  millrace.ms_of(r.replayed_at), r.replayed_by, r.replayed_into, r.orphan_of, r.orphan_status, r.orphan_policy,
  (r.visible_until < 'infinity')`

export const RECORD_WIDTH = 40

/** Positions after the job itself, for those who list what is due. */
export const ORPHAN_OF = 36
export const ORPHAN_STATUS = 37
export const ORPHAN_POLICY = 38
export const HAS_VISIBILITY = 39

export function parseRecord(row: Row): StoredJob {
  return {
    id: row[0] as JobId, // a job id by its column
    queue: row[1] ?? '',
    name: row[2] ?? '',
    payload: row[3] ?? 'null',
    priority: Number(row[4]),
    status: row[5] as JobStatus, // the view gives these words only
    attemptCount: Number(row[6]),
    maxAttempts: Number(row[7]),
    crashCount: Number(row[8]),
    timeoutMs: Number(row[9]),
    runAtMs: Number(row[10]),
    enqueuedAtMs: Number(row[11]),
    updatedAtMs: Number(row[12]),
    startedAtMs: msOf(row[13]),
    finishedAtMs: msOf(row[14]),
    lastError: isAbsent(row[15]) ? null : (JSON.parse(row[15]) as AttemptError), // written from an AttemptError
    result: row[16] ?? null,
    progress: row[17] ?? null,
    worker: (row[18] ?? null) as WorkerId | null, // a worker id by its column
    lease: Number(row[19]) as LeaseNumber, // minted by millrace.lease_seq
    batch: (row[20] ?? null) as BatchId | null, // a batch id by its column
    tags: isAbsent(row[21]) ? [] : (JSON.parse(row[21]) as readonly string[]), // text[] as JSON
    meta: row[22] ?? null,
    group: row[23] ?? null,
    limitKey: row[24] ?? null,
    uniqueKey: row[25] ?? null,
    parents: isAbsent(row[26]) ? [] : (JSON.parse(row[26]) as readonly JobId[]), // uuids as JSON
    schedule: isAbsent(row[27]) ? null : { name: row[27], tickMs: Number(row[28]) },
    waitsFor: waitReason(row),
    cancelRequested: row[31] === 't',
    replayOf: (row[32] ?? null) as JobId | null, // a job id by its column
    replayedAtMs: msOf(row[33]),
    replayedBy: row[34] ?? null,
    replayedInto: (row[35] ?? null) as JobId | null, // a job id by its column
  }
}

function waitReason(row: Row): WaitReason | null {
  if (!isAbsent(row[30])) return wordOf(GATE, Number(row[30]))
  return isAbsent(row[29]) ? null : wordOf(WAITS_FOR, Number(row[29]))
}
