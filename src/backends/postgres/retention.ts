// Retention over SQL: a pass makes partitions ahead of time, deletes what is due by itself, goes one step on with the
// partition that is being retired, and trims logs and archive. Every step is one bounded statement; what is in
// somebody's way is put off (docs/retention.md). Also reading the archive.
import { DEFAULTS } from '../../core/limits.ts'
import type { JobId, StoredJob } from '../../core/job.ts'
import type { JobQuery } from '../../store/job-query.ts'
import type { JobStore, PruneRule, RetainReply } from '../../store/ports.ts'
import type { Value } from './rows-query.ts'
import { parseRecord, RECORD_COLUMNS, RECORD_WIDTH } from './records.ts'
import type { Connections } from './connections.ts'
import { prepared, statement } from './store.ts'
import type { PostgresStore } from './store.ts'
import { bigintArray, intArray, textArray, uuidArray } from './wire.ts'
import { ENDED } from './words.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'

/** Jobs of a part that is judged at once; a part that changed is judged again under the lock. */
const CHUNK_MAX = 2_000

/** What a step answers when it did nothing. */
const IDLE: Readonly<Record<string, RetainReply['next']>> = { none: 'later', busy: 'soon' }

export function createRetain(store: PostgresStore): NonNullable<JobStore['retain']> {
  const extend = prepared(store, 'jobs.retain', 'select millrace.extend_partitions($1)')
  const expire = prepared(
    store,
    'jobs.retain',
    'select deleted, more from millrace.expire_jobs($1, $2, $3, $4, $5, $6)',
  )
  const retire = prepared(store, 'jobs.retain', 'select millrace.retire_step($1, $2, $3, $4, $5, $6)')
  const logs = prepared(store, 'jobs.retain', 'select millrace.expire_logs($1, $2)')
  const archive = prepared(store, 'jobs.retain', 'select millrace.expire_archive($1, $2, $3)')

  return async ({ rules, archiveMs, logsMs, partitionMs }, limit) => {
    const values = ruleValues(rules)
    const extended = await extend(partitionMs)
    const [expired] = await expire(...values, archiveMs, partitionMs, limit)
    const retired = await retire(...values, archiveMs, partitionMs, Math.min(limit * 2, CHUNK_MAX))
    const [trimmed] = await logs(logsMs, limit)
    const archived = await archive(archiveMs, logsMs, limit)
    const words = [extended, retired, archived].map(([row]) => row?.[0] ?? 'none')
    const nexts = words.map((word) => IDLE[word] ?? 'now')
    const hasMore = expired?.[1] === 't' || trimmed?.[0] === 't' || nexts.includes('now')
    return {
      deleted: Number(expired?.[0] ?? 0),
      next: hasMore ? 'now' : nexts.includes('soon') ? 'soon' : 'later',
      did: words.filter((word) => IDLE[word] === undefined),
    }
  }
}

/** The first jobs of a new schema have a partition already. Whoever may not make one, or is late, leaves it to maintenance. */
export async function beginPartitions(store: PostgresStore): Promise<void> {
  const begin = prepared(
    store,
    'start',
    `select millrace.extend_partitions($1) where not exists (select 1 from millrace.time_partitions('job_bodies'))`,
  )
  await begin(DEFAULTS.retentionPartitionMs).catch((error: unknown) => {
    store.logger.debug({ error }, 'no partition for new jobs yet; maintenance makes it')
  })
}

export function createArchived(store: PostgresStore): NonNullable<JobQuery['archived']> {
  const one = statement(
    store,
    'query.archived',
    `select ${RECORD_COLUMNS}, to_json(r.parents)::text from millrace.archived_of($1) r`,
  )
  const found = async (connections: Connections, ids: readonly JobId[]) =>
    new Map((await connections.run(one, [uuidArray(ids)])).map((row) => [row[0], parseArchived(row)] as const))
  return async (ids) => {
    if (ids.length === 0) return []
    const known = await store.reads.from((connections) => found(connections, ids))
    const missing = store.reads.mayLag ? ids.filter((id) => !known.has(id)) : []
    // On its way to the replica it would seem to be nowhere: no longer a job, and not in the archive yet.
    const late = missing.length === 0 ? known : await found(store.connections, missing)
    return ids.map((id) => known.get(id) ?? late.get(id) ?? null)
  }
}

function parseArchived(row: Row): StoredJob {
  const parents = row[RECORD_WIDTH]
  return {
    ...parseRecord(row.slice(0, RECORD_WIDTH)),
    parents: isAbsent(parents) ? [] : (JSON.parse(parents) as readonly JobId[]), // uuids as JSON
  }
}

function ruleValues(rules: readonly PruneRule[]): readonly Value[] {
  return [
    textArray(rules.map(({ queue }) => queue ?? null)),
    intArray(rules.map(({ status }) => ENDED[status])),
    bigintArray(rules.map(({ olderThanMs }) => olderThanMs)),
  ]
}
