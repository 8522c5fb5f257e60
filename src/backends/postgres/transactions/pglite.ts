// PGlite: the `tx` of `db.transaction`, which says when it is closed.
import type { Candidate, TransactionState } from './candidate.ts'
import { hasMethods, property } from './shape.ts'

export function recognisePglite(value: unknown): Candidate | undefined {
  if (!hasMethods(value, 'query', 'sql', 'exec')) return undefined
  return {
    library: 'PGlite',
    example: 'await db.transaction(async (tx) => { await mill.in(tx).enqueue(job, input) })',
    state: () =>
      isPgliteTransaction(value) ? pgliteState(value) : { problem: 'this is a PGlite database and no transaction' },
    run: async (text, params) => value.query(text, [...params]),
  }
}

export function isPgliteTransaction(value: unknown): boolean {
  return hasMethods(value, 'query', 'sql', 'exec', 'rollback') && !hasMethods(value, 'transaction')
}

export function pgliteState(tx: unknown): TransactionState {
  return property(tx, 'closed') === true ? { problem: 'this PGlite transaction is over' } : 'open'
}
