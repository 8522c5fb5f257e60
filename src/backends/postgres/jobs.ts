// The write path of the seam over SQL: one statement per call, but for what is due.
import type { JobId, LeaseNumber, LeaseRef } from '../../core/job.ts'
import type { DueJob, DueKind, JobStore } from '../../store/ports.ts'
import type { Cycle } from './cycle.ts'
import { createInsert } from './insert.ts'
import { createRetain } from './retention.ts'
import {
  HAS_VISIBILITY,
  ORPHAN_OF,
  ORPHAN_POLICY,
  ORPHAN_STATUS,
  parseRecord,
  RECORD_COLUMNS,
  RECORD_WIDTH,
} from './records.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { bigintArray, intArray, textArray, uuidArray } from './wire.ts'
import { ENDED, POLICY, wordOf } from './words.ts'
import { msOf } from './row.ts'
import type { Row } from './row.ts'

/** The jobs that are due, as ids; what they are is read by id. */
const DUE: Readonly<Record<DueKind, string>> = {
  expired: 'select e.id from millrace.expired_jobs($1) as e(id) limit $1',
  orphaned: `select k.id from millrace.blocked k where k.orphan_of is not null limit $1`,
  'batch-cancelled': 'select c.id from millrace.jobs_of_cancelled($1) as c(id)',
}

export function postgresJobs(store: PostgresStore, cycle: Cycle): JobStore {
  const insert = createInsert(store)
  const extend = prepared(
    store,
    'jobs.extend',
    `with asked as (select * from unnest($1::uuid[], $2::bigint[]) as a(id, lease)),
     moved as (
       update millrace.running r set visible_until = case when r.visible_until = 'infinity' then r.visible_until
         else millrace.after_ms(millrace.now_at(), $3::bigint) end
       from asked a where r.id = a.id and r.lease = a.lease returning r.id)
     select a.id, a.lease from asked a where a.id not in (select m.id from moved m)`,
  )
  const holdings = prepared(store, 'jobs.holdings', 'select h.job_id, h.lease from millrace.fence_worker($1, $2) as h')
  const promote = prepared(store, 'jobs.promote', 'select promoted, next_due_ms, rings from millrace.promote_jobs($1)')
  const prune = prepared(store, 'jobs.prune', 'select millrace.prune_jobs($1, $2, $3, $4)')
  // Usually nothing is due: then nobody pays for whole records. If there is, both are read at one moment: a record that
  // is newer than the reason would be judged for what another run did.
  const due = Object.fromEntries(
    Object.entries(DUE).map(([kind, sql]) => [
      kind,
      {
        some: prepared(store, 'jobs.due', sql),
        records: prepared(store, 'jobs.due', `select ${RECORD_COLUMNS} from millrace.records_of(array(${sql})) r`),
      },
    ]),
  ) as Record<DueKind, Record<'some' | 'records', ReturnType<typeof prepared>>> // the same keys

  return {
    insert: async (jobs) => (await insert(jobs)).reply,
    claim: (request) => cycle.claim(request),
    apply: (transitions) => cycle.apply(transitions),
    async extend(leases, leaseMs) {
      if (leases.length === 0) return []
      const ids = uuidArray(leases.map(({ jobId }) => jobId))
      return (await extend(ids, bigintArray(leases.map(({ lease }) => lease)), Math.ceil(leaseMs))).map(leaseRef)
    },
    async holdings(worker, claimNo) {
      cycle.fence(worker, claimNo)
      return (await holdings(worker, claimNo)).map(leaseRef)
    },
    async promote(limit) {
      const [row] = await promote(limit)
      store.doorbell.ringAll(row?.[2])
      return { promoted: Number(row?.[0] ?? 0), nextDueInMs: msOf(row?.[1]) }
    },
    async due(kind, limit) {
      const { some, records } = due[kind]
      if (limit < 1 || (await some(1)).length === 0) return []
      return (await records(limit)).map((row) => dueJob(row, kind))
    },
    async prune(rules, limit) {
      const [row] = await prune(
        textArray(rules.map(({ queue }) => queue ?? null)),
        intArray(rules.map(({ status }) => ENDED[status])),
        bigintArray(rules.map(({ olderThanMs }) => olderThanMs)),
        limit,
      )
      return Number(row?.[0] ?? 0)
    },
    retain: createRetain(store),
  }
}

function leaseRef(row: Row): LeaseRef {
  return { jobId: row[0] as JobId, lease: Number(row[1]) as LeaseNumber } // by their columns
}

function dueJob(row: Row, kind: DueKind): DueJob {
  const job = parseRecord(row.slice(0, RECORD_WIDTH))
  if (kind === 'expired') return row[HAS_VISIBILITY] === 't' ? { job, visibilityLapsed: true } : { job }
  if (kind !== 'orphaned') return { job }
  return {
    job,
    orphan: {
      parent: row[ORPHAN_OF] as JobId, // a job id by its column
      parentStatus: wordOf(ENDED, Number(row[ORPHAN_STATUS])) === 'failed' ? 'failed' : 'cancelled',
      policy: wordOf(POLICY, Number(row[ORPHAN_POLICY])) === 'fail' ? 'fail' : 'cancel',
    },
  }
}
