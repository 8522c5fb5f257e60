// Queues as an operator sees them: configure, pause, resume, look.
import type { LaneBounds } from '../core/priority.ts'
import type { RetryPolicyRecord } from '../core/retry.ts'
import { MillraceError } from '../core/errors.ts'
import { checkName } from '../core/names.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type {
  QueueChange,
  QueueLimits,
  QueueRecord,
  QueueRetention,
  QueueSettings,
  QueueStore,
} from '../store/queue-store.ts'
import type { Connections } from './connections.ts'
import { checkQueueOptions } from './queue-options.ts'
import type { QueueOptions } from './queue-options.ts'
import { retryStore } from './store-retry.ts'

export interface Queue {
  readonly name: string
  readonly connection: string
  readonly paused: boolean
  readonly priority: number
  readonly attempts: number
  readonly retry: RetryPolicyRecord | null
  readonly limits: QueueLimits
  readonly retention: QueueRetention
  readonly lowerLaneShare: number
  readonly lanes: LaneBounds
  readonly createdAt: Date
  /** Rises with every change. */
  readonly version: number
}

export interface Queues {
  /** Creates or changes; what is not named stays. */
  configure(name: string, options: QueueOptions): Promise<Queue>
  /** No job of it is started any more; running ones finish; enqueueing still works. */
  pause(name: string): Promise<Queue>
  resume(name: string): Promise<Queue>
  get(name: string): Promise<Queue | null>
  list(): Promise<readonly Queue[]>
}

const CHANGE_TRIES_MAX = 10

/** A lost reply: the change was made by the try whose answer never came. */
function saysAlready(record: QueueRecord, change: QueueChange): boolean {
  const named = Object.keys(change) as (keyof QueueChange)[]
  return named.every((name) => JSON.stringify(record[name]) === JSON.stringify(change[name]))
}

/** `named` answers the settings of a queue that a job or a declaration names, which may have no record yet. */
export function createQueues(
  connections: Connections,
  runtime: Runtime,
  named: (queue: string) => QueueSettings | null,
): Queues {
  /** What was declared is not lost to a change that comes before the first job. */
  async function recordOf(name: string, queues: QueueStore): Promise<QueueRecord | null> {
    const record = await retryStore(runtime, () => queues.get(name))
    const settings = record === null ? named(name) : null
    if (settings === null) return record
    await retryStore(runtime, () => queues.ensure([settings]))
    return retryStore(runtime, () => queues.get(name))
  }

  async function change(name: string, changeOf: (known: QueueRecord | null) => QueueChange): Promise<Queue> {
    const connection = connections.ofQueue(checkName(name, 'queue'))
    const { queues } = connections.backend(connection)
    // Read, change, write if nobody was faster: no setting of another operator is lost, and a call that was
    // lost on its way cannot undo a later one.
    for (let tryNo = 1; tryNo <= CHANGE_TRIES_MAX; tryNo++) {
      const known = await recordOf(name, queues)
      const changed = changeOf(known)
      const record = await retryStore(runtime, () => queues.configure(name, changed, known?.version ?? 0))
      if (record !== null) return viewQueue(record, connection)
      const now = await retryStore(runtime, () => queues.get(name))
      if (now !== null && now.version === (known?.version ?? 0) + 1 && saysAlready(now, changed))
        return viewQueue(now, connection)
    }
    throw new MillraceError('NOTE_CONFLICT', `queue ${name} is being changed by many at once; try again`, {
      retryable: true,
    })
  }

  return {
    async configure(name, options) {
      // Once before the store is asked, so that a bad option is refused even when the store is away.
      checkQueueOptions(options, `queue ${name}`)
      return change(name, (known) => checkQueueOptions(options, `queue ${name}`, known ?? undefined))
    },
    pause: async (name) => change(name, (known) => pausing(name, known, true)),
    resume: async (name) => change(name, (known) => pausing(name, known, false)),
    async get(name) {
      const connection = connections.ofQueue(checkName(name, 'queue'))
      const record = await connections.backend(connection).queues.get(name)
      return record && viewQueue(record, connection)
    },
    async list() {
      const read = async (connection: string) =>
        (await connections.backend(connection).queues.list()).map((record) => viewQueue(record, connection))
      return (await Promise.all(connections.names.map(read))).flat()
    },
  }
}

/** A typo must not make a queue that nobody works on, while the one that was meant goes on. */
function pausing(name: string, known: QueueRecord | null, paused: boolean): QueueChange {
  if (known !== null) return { paused }
  const message = `there is no queue ${name}: no job or declaration names it, and it was never configured`
  throw new MillraceError('QUEUE_NOT_FOUND', message, { details: { queue: name } })
}

function viewQueue(record: QueueRecord, connection: string): Queue {
  const { name, paused, retry, limits, retention, lowerLaneShare, lanes, version } = record
  return {
    name,
    connection,
    paused,
    priority: record.defaultPriority,
    attempts: record.defaultAttempts,
    retry,
    limits,
    retention,
    lowerLaneShare,
    lanes,
    createdAt: new Date(record.createdAtMs),
    version,
  }
}
