// Kysely: a Transaction, or a ControlledTransaction and its savepoints. A Transaction does not tell when it
// is over, and copies of a controlled one (`withSchema`) are not told of its commit; so the server is asked.
import { assert } from '../../../core/errors.ts'
import type { Candidate, SqlParam, TransactionState } from './candidate.ts'
import { hasMethods, property } from './shape.ts'

export function recogniseKysely(value: unknown): Candidate | undefined {
  if (!hasMethods(value, 'executeQuery', 'getExecutor', 'withoutPlugins')) return undefined
  return {
    library: 'Kysely',
    example: 'await db.transaction().execute(async (trx) => { await mill.in(trx).enqueue(job, input) })',
    state: () => stateOf(value),
    async run(text, params) {
      // Plugins rename columns, and some rewrite the query tree, which a raw statement does not have.
      const plain = value.withoutPlugins()
      assert(hasMethods(plain, 'executeQuery'), 'a Kysely without plugins cannot execute')
      return plain.executeQuery(compiled(text, params))
    },
  }
}

function stateOf(kysely: unknown): TransactionState {
  if (property(kysely, 'isTransaction') !== true) return { problem: 'this is a Kysely database and no transaction' }
  const isOver = property(kysely, 'isCommitted') === true || property(kysely, 'isRolledBack') === true
  return isOver ? { problem: 'this Kysely transaction is over' } : 'unknown'
}

/** A `CompiledQuery`. */
function compiled(sql: string, parameters: readonly SqlParam[]) {
  return {
    sql,
    parameters,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: 'millrace' },
  }
}
