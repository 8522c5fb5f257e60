// Named connections: which backend a job, a queue or an id belongs to. A job names its connection, or
// its queue does, or it is the default one.
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId, StoredJob } from '../core/job.ts'
import { checkName, shown } from '../core/names.ts'
import type { Backend } from '../store/ports.ts'

export const DEFAULT_CONNECTION = 'default'

export interface Connections {
  /** The default one first. */
  readonly names: readonly string[]
  /** Throws CONNECTION_NOT_FOUND. */
  backend(name: string): Backend
  ofJob(job: Pick<AnyJob, 'name' | 'queue' | 'connection'>): string
  ofQueue(queue: string): string
  /** One connection for all of them, or CONNECTION_MIXED. */
  common(names: Iterable<string>, what: string): string
  /** The connections to look at: the one asked for, or all. */
  asked(connection: string | undefined): readonly string[]
  /** Where the job is; null when none of them has it. */
  locate(id: JobId, connection?: string): Promise<{ readonly connection: string; readonly job: StoredJob } | null>
}

export function createConnections(
  backends: Readonly<Record<string, Backend>>,
  queues: Readonly<Record<string, { readonly connection?: string }>> = {},
  jobs: readonly Pick<AnyJob, 'name' | 'queue' | 'connection'>[] = [],
): Connections {
  const byName = new Map(Object.entries(backends))
  for (const name of byName.keys()) checkName(name, 'connection')
  const names = [...byName.keys()].sort((a, b) => Number(b === DEFAULT_CONNECTION) - Number(a === DEFAULT_CONNECTION))
  const ofQueues = new Map(Object.entries(queues).map(([queue, { connection }]) => [queue, connection]))

  function backend(name: string): Backend {
    const found = byName.get(name)
    if (found !== undefined) return found
    const message = `there is no connection ${shown(name)}; configured: ${names.join(', ') || 'none'}`
    throw new MillraceError('CONNECTION_NOT_FOUND', message, { details: { connection: name } })
  }

  const known = (name: string): string => {
    backend(name)
    return name
  }
  known(DEFAULT_CONNECTION)
  for (const connection of ofQueues.values()) if (connection !== undefined) known(connection)

  // A queue lives on one connection: pausing it must mean the queue that its jobs are in.
  for (const { name, queue, connection } of jobs) {
    const declared = ofQueues.get(queue)
    if (connection === undefined || declared === connection) continue
    const isUsed =
      declared !== undefined || jobs.some((other) => other.queue === queue && other.connection === undefined)
    if (isUsed) throw mixedQueue(name, queue, connection, declared ?? DEFAULT_CONNECTION)
    ofQueues.set(queue, known(connection))
  }

  const ofQueue = (queue: string): string => ofQueues.get(queue) ?? DEFAULT_CONNECTION
  const asked = (connection?: string): readonly string[] => (connection === undefined ? names : [known(connection)])
  return {
    names,
    backend,
    ofQueue,
    ofJob: (job) => (job.connection === undefined ? ofQueue(job.queue) : known(job.connection)),
    common: (list, what) => oneOf([...new Set(list)], what),
    asked,
    async locate(id, connection) {
      const found = await Promise.all(
        asked(connection).map(async (name) => ({ connection: name, job: (await backend(name).query.get([id]))[0] })),
      )
      for (const { connection: name, job } of found) if (job) return { connection: name, job }
      return null
    },
  }
}

function mixedQueue(job: string, queue: string, connection: string, other: string): MillraceError {
  const message = `queue ${queue} is on connection ${other}, but job ${job} puts it on ${connection}: give the job a queue of its own`
  return new MillraceError('CONNECTION_MIXED', message, { details: { queue, connections: [other, connection] } })
}

function oneOf(names: readonly string[], what: string): string {
  const [first, ...others] = names
  if (others.length === 0) return first ?? DEFAULT_CONNECTION
  const message = `${what} spans the connections ${names.join(', ')}, but must be written as one: keep its jobs on one connection`
  throw new MillraceError('CONNECTION_MIXED', message, { details: { connections: names } })
}
