// What the ports of this backend share: connections, the schema its statements name, and the doorbell.
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Connections, Statement } from './connections.ts'
import type { Value } from './rows-query.ts'
import type { Doorbell } from './doorbell.ts'
import type { Reads } from './reads.ts'
import { sqlText } from './sql-text.ts'
import type { Row } from './row.ts'

export interface PostgresStore {
  readonly connections: Connections
  /** For what may be a little old. */
  readonly reads: Reads
  readonly schema: string
  readonly doorbell: Doorbell
  readonly clock: Clock
  readonly logger: Logger
}

export type Call = (...values: readonly Value[]) => Promise<readonly Row[]>

/** A statement of a port, with the schema filled in; SQL is written with `millrace.` everywhere. */
export function statement(store: Pick<PostgresStore, 'schema'>, what: string, sql: string): Statement {
  return { what, text: sqlText(sql, store.schema) }
}

/** A statement ready to be called with its values. */
export function prepared(store: PostgresStore, what: string, sql: string): Call {
  const one = statement(store, what, sql)
  return (...values) => store.connections.run(one, values)
}

/** A statement that only reads, and whose answer may be a little old: the replica's, where there is one. */
export function reporting(store: PostgresStore, what: string, sql: string): Call {
  const one = statement(store, what, sql)
  return (...values) => store.reads.from((connections) => connections.run(one, values))
}
