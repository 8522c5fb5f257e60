// Queue records. Limits that change are applied to the jobs that are there, in the same statement as far as it goes.
import type { RetryPolicyRecord } from '../../core/retry.ts'
import { intervalMs } from '../../core/rate.ts'
import type { RateLimit } from '../../core/rate.ts'
import { LIMITS } from '../../core/limits.ts'
import { defaultQueue } from '../../store/queue-defaults.ts'
import type { QueueChange, QueueRecord, QueueSettings, QueueStore } from '../../store/queue-store.ts'
import { CONFIG_TOPIC, SCHEDULED_TOPIC, readyTopic } from '../../store/wakeups.ts'
import type { Value } from './rows-query.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { isAbsent, msOf } from './row.ts'
import type { Row } from './row.ts'

const COLUMNS = `q.name, q.default_priority, q.default_attempts, q.is_active, q.retry::text, q.concurrency, q.per_key_concurrency,
  q.rate::text, q.per_key_rate::text, q.retain_completed_ms, q.retain_failed_ms, q.retain_cancelled_ms, q.lower_lane_share,
  q.lane_high_max, q.lane_normal_max, millrace.ms_of(q.created_at), q.version`

export function postgresQueues(store: PostgresStore): QueueStore {
  const ensure = prepared(store, 'queues.ensure', 'select millrace.ensure_queue($1)')
  const configure = prepared(
    store,
    'queues.configure',
    'select changed, rings from millrace.configure_queue($1, $2, $3)',
  )
  const get = prepared(store, 'queues.get', `select ${COLUMNS} from millrace.job_queues q where q.name = $1`)
  const list = prepared(store, 'queues.list', `select ${COLUMNS} from millrace.job_queues q order by q.id`)

  async function read(name: string): Promise<QueueRecord | null> {
    const [row] = await get(name)
    return row === undefined ? null : parseQueue(row)
  }

  return {
    async ensure(queues) {
      const records: QueueRecord[] = []
      for (const settings of queues) {
        const found = await read(settings.name)
        if (found !== null) {
          records.push(found)
          continue
        }
        const [row] = await ensure(queueJson(settings))
        if (row?.[0] === 't') store.doorbell.ring(CONFIG_TOPIC)
        records.push((await read(settings.name))!) // it is there now, and queues are never deleted
      }
      return records
    },
    async configure(queue, change, expectVersion) {
      const values: readonly Value[] = [
        queue,
        queueJson({ ...defaultQueue(queue), ...change }, change),
        expectVersion ?? null,
      ]
      const [row] = await configure(...values)
      if (row?.[0] !== 't') return null
      const record = await read(queue)
      store.doorbell.ring(CONFIG_TOPIC)
      store.doorbell.ring(readyTopic(queue))
      if (change.limits !== undefined) store.doorbell.ring(SCHEDULED_TOPIC)
      store.doorbell.ringAll(row[1])
      return record
    },
    get: read,
    async list() {
      return (await list()).map(parseQueue)
    },
  }
}

/** Only the fields of `given`, by the names of their columns. */
function queueJson(settings: QueueSettings & { readonly paused?: boolean }, given: QueueChange = settings): string {
  const { limits, retention, lanes } = settings
  return JSON.stringify({
    name: settings.name,
    most: LIMITS.maintenanceBatchMax,
    ...(given.defaultPriority !== undefined && { default_priority: settings.defaultPriority }),
    ...(given.defaultAttempts !== undefined && { default_attempts: settings.defaultAttempts }),
    ...(given.retry !== undefined && { retry: settings.retry }),
    ...(given.paused !== undefined && { is_active: !given.paused }),
    ...(given.lowerLaneShare !== undefined && { lower_lane_share: settings.lowerLaneShare }),
    ...(given.lanes !== undefined && { lane_high_max: lanes[0], lane_normal_max: lanes[1] }),
    ...(given.limits !== undefined && {
      limits: true,
      concurrency: limits.concurrency,
      per_key_concurrency: limits.perKeyConcurrency,
      rate: limits.rate,
      per_key_rate: limits.perKeyRate,
      rate_interval_ms: intervalOf(limits.rate),
      per_key_rate_interval_ms: intervalOf(limits.perKeyRate),
    }),
    ...(given.retention !== undefined && {
      retain_completed_ms: retention.completedMs,
      retain_failed_ms: retention.failedMs,
      retain_cancelled_ms: retention.cancelledMs,
    }),
  })
}

function intervalOf(rate: RateLimit | null): number | null {
  return rate === null ? null : intervalMs(rate)
}

export function parseQueue(row: Row): QueueRecord {
  return {
    name: row[0] ?? '',
    defaultPriority: Number(row[1]),
    defaultAttempts: Number(row[2]),
    paused: row[3] !== 't',
    retry: isAbsent(row[4]) ? null : (JSON.parse(row[4]) as RetryPolicyRecord), // written from one
    limits: {
      concurrency: numberOf(row[5]),
      perKeyConcurrency: numberOf(row[6]),
      rate: isAbsent(row[7]) ? null : (JSON.parse(row[7]) as RateLimit), // written from one
      perKeyRate: isAbsent(row[8]) ? null : (JSON.parse(row[8]) as RateLimit), // written from one
    },
    retention: { completedMs: numberOf(row[9]), failedMs: numberOf(row[10]), cancelledMs: numberOf(row[11]) },
    lowerLaneShare: Number(row[12]),
    lanes: [Number(row[13]), Number(row[14])],
    createdAtMs: msOf(row[15]) ?? 0,
    version: Number(row[16]),
  }
}

function numberOf(value: string | null | undefined): number | null {
  return isAbsent(value) ? null : Number(value)
}
