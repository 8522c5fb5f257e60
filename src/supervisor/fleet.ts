// Which supervisors there are, on which hosts, with which children: records in the store that their supervisor
// rewrites, and that vanish by themselves when it does not. Shown and added up; nothing is decided by them that
// a record which is a few seconds old could spoil.
import { LIMITS } from '../core/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { NoteStore } from '../store/note-store.ts'

export const SUPERVISORS_SPACE = 'supervisors'
export const FLEET_TTL_MS = 15_000
export const FLEET_PERIOD_MS = 2_500

const PAGE = 100
const SUPERVISORS_MAX = 1_000
/** How many queues of a pool are shown: as many as fit into a record. */
const QUEUES_SHOWN = [Infinity, 50, 10, 2]

export const CHILD_STATES = ['starting', 'running', 'quiet', 'draining', 'stopped', 'crashed', 'unhealthy'] as const
export type ChildState = (typeof CHILD_STATES)[number]

export interface ChildStatus {
  readonly id: string
  readonly workerIds: readonly string[]
  readonly pool: string
  readonly queues: readonly string[]
  readonly pid: number | null
  readonly state: ChildState
  readonly rssBytes: number
  readonly cpuPercent: number
  readonly loopLagMs: number
  readonly processed: number
  readonly failed: number
  readonly running: number
  readonly concurrency: number
  readonly startedAtMs: number
  readonly lastHeartbeatAtMs: number
}

export interface PoolStatus {
  readonly name: string
  /** Of all jobs, if it is empty. */
  readonly queues: readonly string[]
  /** Jobs at once in each of its processes. */
  readonly concurrency: number
  readonly min: number
  readonly max: number
  readonly wanted: number
  /** Set by hand: the plan of the autoscaler is not followed. */
  readonly pinned?: boolean
  readonly state: 'ok' | 'crash-loop'
  /** Runs that have ended, by queue, since the supervisor started; absent: it does not say. */
  readonly ended?: Readonly<Record<string, number>>
  readonly children: readonly ChildStatus[]
}

export interface SupervisorRecord {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly startedAtMs: number
  readonly state: 'running' | 'quiet' | 'stopping'
  /** Of all its pools together; absent: it is of a release that did not say. */
  readonly processesMax?: number
  readonly pools: readonly PoolStatus[]
  /** Commands that were forged, expired or said twice, since it started. */
  readonly commandsRefused?: number
}

export interface Fleet {
  publish(record: SupervisorRecord): Promise<void>
  withdraw(id: string): Promise<void>
  /** By id; only those whose record is not older than its time to live. */
  list(): Promise<readonly SupervisorRecord[]>
}

export interface FleetOptions {
  readonly notes: NoteStore
  readonly runtime: Pick<Runtime, 'logger'>
}

export function createFleet({ notes, runtime }: FleetOptions): Fleet {
  return {
    async publish(record) {
      await notes.put({ space: SUPERVISORS_SPACE, key: record.id, value: encode(record), ttlMs: FLEET_TTL_MS })
    },
    async withdraw(id) {
      await notes.remove(SUPERVISORS_SPACE, id)
    },
    async list() {
      const found: SupervisorRecord[] = []
      let cursor: string | undefined
      while (found.length < SUPERVISORS_MAX) {
        const page = await notes.list(SUPERVISORS_SPACE, PAGE, cursor)
        for (const { key, value } of page) {
          const record = decode(value)
          if (record !== null) found.push(record)
          else runtime.logger.warn({ supervisor: key }, 'the record of a supervisor cannot be read and is left out')
        }
        cursor = page.at(-1)?.key
        if (page.length < PAGE) break
      }
      return found
    },
  }
}

/** What a child has from its pool is not written twice. */
type ShortChild = Omit<ChildStatus, 'pool' | 'queues'>
type ShortPool = Omit<PoolStatus, 'children'> & { readonly children: readonly ShortChild[] }
type ShortRecord = Omit<SupervisorRecord, 'pools'> & { readonly pools: readonly ShortPool[] }

function encode(record: SupervisorRecord): string {
  let text = ''
  for (const queuesMax of QUEUES_SHOWN) {
    text = JSON.stringify(shorten(record, queuesMax))
    if (Buffer.byteLength(text) <= LIMITS.noteBytesMax) break
  }
  return text
}

function shorten({ pools, ...record }: SupervisorRecord, queuesMax: number): ShortRecord {
  return {
    ...record,
    pools: pools.map(({ children, ended, ...pool }) => ({
      ...pool,
      // All of them or none: whoever reads it takes it for complete.
      ...(ended !== undefined && queuesMax === Infinity && { ended }),
      queues: pool.queues.slice(0, queuesMax),
      children: children.map((child) => {
        const { pool: _, queues: __, ...own } = child
        return own
      }),
    })),
  }
}

/** Null for what is no record: another version may have written it. */
function decode(text: string): SupervisorRecord | null {
  try {
    const { pools, ...record } = JSON.parse(text) as ShortRecord // checked as far as it is used here
    return {
      ...record,
      pools: pools.map(({ children, ...pool }) => ({
        ...pool,
        children: children.map((child) => ({ ...child, pool: pool.name, queues: pool.queues })),
      })),
    }
  } catch {
    return null
  }
}
