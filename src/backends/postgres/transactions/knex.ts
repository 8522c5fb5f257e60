// Knex, and Objection on top of it: the `trx` of `knex.transaction`, nested ones included. Knex writes
// parameters as `?` and knows when its transaction is completed.
import type { Candidate, SqlParam, TransactionState } from './candidate.ts'
import { hasMethods, property } from './shape.ts'

export function recogniseKnex(value: unknown): Candidate | undefined {
  if (typeof value !== 'function' || !hasMethods(value, 'raw', 'transaction', 'queryBuilder')) return undefined
  return {
    library: 'Knex',
    example: 'await knex.transaction(async (trx) => { await mill.in(trx).enqueue(job, input) })',
    state: () => stateOf(value),
    run: async (text, params) => value.raw(...withQuestionMarks(text, params)),
  }
}

function stateOf(knex: unknown): TransactionState {
  if (property(knex, 'isTransaction') !== true) return { problem: 'this is a Knex instance and no transaction' }
  const dialect = property(property(knex, 'client'), 'dialect')
  if (dialect !== 'postgresql')
    return { problem: `this Knex transaction is on ${String(dialect)} and not on PostgreSQL` }
  const isOver = hasMethods(knex, 'isCompleted') && knex.isCompleted() === true
  return isOver ? { problem: 'this Knex transaction is over' } : 'open'
}

/** `$2, $1, $2` becomes `?, ?, ?` with the values in that order; a `?` of SQL itself is kept by a backslash. */
function withQuestionMarks(text: string, params: readonly SqlParam[]): [string, readonly SqlParam[]] {
  const bindings: SqlParam[] = []
  const sql = text.replaceAll(/\?|\$(\d+)/g, (found, place: string | undefined) => {
    if (place === undefined) return `\\${found}`
    bindings.push(params[Number(place) - 1] ?? null)
    return '?'
  })
  return [sql, bindings]
}
