// The books of a run, kept outside the database: what a producer was told, which handlers started. Compared at the
// end with what the database says became of each job.
import { existsSync, readFileSync } from 'node:fs'
import type pg from 'pg'

export interface LedgerFiles {
  readonly ledger: string
  readonly runs: string
}

export interface Balance {
  /** Acknowledged enqueues. */
  readonly acked: number
  /** Acknowledged, and not completed. */
  readonly lost: readonly string[]
  /** In the database, and never asked for. */
  readonly unexpected: readonly string[]
  /** Completed without exactly one `success` in the audit trail: a stale result was applied. */
  readonly notOnce: readonly string[]
  /** Started more often than the audit trail has rows for it: a run that no claim accounts for. */
  readonly unexplained: readonly string[]
  /** Started more than once, for whatever reason. */
  readonly repeated: readonly string[]
}

export const BALANCED = { lost: [], unexpected: [], notOnce: [], unexplained: [] } as const

export function ackedIn(ledger: string): readonly string[] {
  return linesOf(ledger).flatMap((line) => (line.startsWith('acked ') ? [line.slice('acked '.length)] : []))
}

/** Asked for, and nobody knows what became of it. */
export function askedOnlyIn(ledger: string): readonly string[] {
  const acked = new Set(ackedIn(ledger))
  return linesOf(ledger).flatMap((line) => {
    const id = line.startsWith('asked ') ? line.slice('asked '.length) : ''
    return id === '' || acked.has(id) ? [] : [id]
  })
}

/** How often the handler of each job started. */
export function runsIn(runs: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const line of linesOf(runs)) {
    const job = line.slice(0, line.indexOf(' '))
    counts.set(job, (counts.get(job) ?? 0) + 1)
  }
  return counts
}

export async function liveJobs(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select ((select count(*) from millrace.ready) + (select count(*) from millrace.running)
      + (select count(*) from millrace.scheduled) + (select count(*) from millrace.blocked))::int as count`,
  )
  return rows[0]?.count ?? 0
}

export async function balance(client: pg.Client, files: LedgerFiles): Promise<Balance> {
  const { rows } = await client.query<Booked>(
    `select r.id::text, r.status, count(l.id) filter (where l.status = 'success')::int as successes, count(l.id)::int as rows
     from millrace.job_records r left join millrace.job_logs l on l.job_id = r.id group by 1, 2`,
  )
  return balanceOf(rows, files)
}

/** What a store says of one job. */
export interface Booked {
  readonly id: string
  readonly status: string
  /** Rows of its audit trail, and those that say `success`. */
  readonly rows: number
  readonly successes: number
}

export function balanceOf(rows: readonly Booked[], files: LedgerFiles): Balance {
  const jobs = new Map(rows.map((row) => [row.id, row]))
  const acked = ackedIn(files.ledger)
  const asked = new Set(linesOf(files.ledger).map((line) => line.slice(line.indexOf(' ') + 1)))
  const runs = runsIn(files.runs)
  return {
    acked: acked.length,
    lost: acked.filter((id) => jobs.get(id)?.status !== 'completed'),
    unexpected: asked.size === 0 ? [] : rows.flatMap(({ id }) => (asked.has(id) ? [] : [id])),
    notOnce: rows.flatMap(({ id, status, successes }) => (status === 'completed' && successes !== 1 ? [id] : [])),
    unexplained: [...runs].flatMap(([id, count]) => (count > (jobs.get(id)?.rows ?? 0) ? [id] : [])),
    repeated: [...runs].flatMap(([id, count]) => (count > 1 ? [id] : [])),
  }
}

function linesOf(path: string): readonly string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}
