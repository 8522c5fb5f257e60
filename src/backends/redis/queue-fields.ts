// A queue record as the fields of its `config` hash: what Lua compares as plain fields, everything as JSON beside them.
import { intervalMs } from '../../core/rate.ts'
import type { RateLimit } from '../../core/rate.ts'
import type { QueueRecord } from '../../store/queue-store.ts'

export type QueueBody = Omit<QueueRecord, 'createdAtMs' | 'version'>

/** An empty text stands for null: Lua takes it for "no limit". */
export function configFields(queue: QueueBody): Readonly<Record<string, string>> {
  const { limits } = queue
  return {
    paused: queue.paused ? '1' : '',
    priority: String(queue.defaultPriority),
    attempts: String(queue.defaultAttempts),
    high: String(queue.lanes[0]),
    normal: String(queue.lanes[1]),
    share: String(queue.lowerLaneShare),
    slots: text(limits.concurrency),
    keySlots: text(limits.perKeyConcurrency),
    rate: rateText(limits.rate),
    keyRate: rateText(limits.perKeyRate),
    gated: Object.values(limits).some((limit) => limit !== null) ? '1' : '',
    record: JSON.stringify({ ...queue, name: undefined, paused: undefined }),
  }
}

export function parseQueue(name: string, fields: ReadonlyMap<string, string>): QueueRecord {
  const body = JSON.parse(fields.get('record') ?? '{}') as QueueBody // written by configFields
  return {
    ...body,
    name,
    paused: fields.get('paused') === '1',
    createdAtMs: Number(fields.get('created')),
    version: Number(fields.get('version')),
  }
}

function text(limit: number | null): string {
  return limit === null ? '' : String(limit)
}

/** `interval burst`: the interval is a multiple of 1/2048 ms (core/rate.ts), so its decimal text is exact. */
function rateText(limit: RateLimit | null): string {
  return limit === null ? '' : `${intervalMs(limit)} ${limit.burst}`
}
