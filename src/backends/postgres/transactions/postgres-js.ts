// postgres.js: the `sql` inside `sql.begin`, or inside one of its savepoints. It does not tell when it is
// over; a query sent through it then would quietly commit by itself.
import type { Candidate, TransactionState } from './candidate.ts'
import { hasMethods } from './shape.ts'

export function recognisePostgresJs(value: unknown): Candidate | undefined {
  if (typeof value !== 'function' || !hasMethods(value, 'unsafe', 'typed')) return undefined
  return {
    library: 'postgres.js',
    example: 'await sql.begin(async (tx) => { await mill.in(tx).enqueue(job, input) })',
    state: () => stateOf(value),
    run: async (text, params) => value.unsafe(text, params),
  }
}

function stateOf(sql: unknown): TransactionState {
  if (hasMethods(sql, 'savepoint')) return 'unknown'
  if (hasMethods(sql, 'release')) return { problem: 'this is a reserved connection of postgres.js' }
  return { problem: 'this is the `sql` of postgres.js outside of `sql.begin`' }
}
