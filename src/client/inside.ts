// `mill.in(tx)`: the verbs that enqueue, written with the rows of the caller. They share everything with those of the
// client but the way to the store, and they are silent: whether there is a job, only the commit decides.
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import type { NewJob } from '../core/job.ts'
import type { InsertReply, InsideTransaction } from '../store/ports.ts'
import type { EnqueueVerbs } from './client-types.ts'
import { DEFAULT_CONNECTION } from './connections.ts'
import type { Connections } from './connections.ts'

type Through<Known extends readonly AnyJob[]> = (
  insert: (connection: string, jobs: readonly NewJob[]) => Promise<InsertReply>,
) => EnqueueVerbs<Known>

export function createIn<Known extends readonly AnyJob[]>(
  connections: Connections,
  through: Through<Known>,
): (tx: object) => EnqueueVerbs<Known> {
  const canInside = (name: string): boolean => connections.backend(name).inside !== undefined
  return (tx) => {
    const insides = new Map<string, InsideTransaction>()
    const insideOf = (connection: string): InsideTransaction => {
      const known = insides.get(connection)
      if (known !== undefined) return known
      const inside = connections.backend(connection).inside?.(tx)
      if (inside === undefined) throw notTransactional(connection)
      insides.set(connection, inside)
      return inside
    }
    // What is no transaction is refused here, not at the first enqueue.
    insideOf(connections.names.find(canInside) ?? DEFAULT_CONNECTION)
    return through(async (connection, jobs) => insideOf(connection).insert(jobs))
  }
}

function notTransactional(connection: string): MillraceError {
  const message =
    `connection ${connection} cannot write inside your transaction, because its jobs are not kept in PostgreSQL: ` +
    'enqueue after the commit, or keep the jobs with postgres() in the database of the transaction'
  return new MillraceError('NOT_SUPPORTED', message, { details: { connection } })
}
