// Drizzle: the `tx` of `db.transaction`, over any of its PostgreSQL drivers. Its classes carry their names
// under a shared symbol; whether a transaction is over, only the driver's own client knows.
import { assert } from '../../../core/errors.ts'
import type { Candidate, SqlParam, TransactionState } from './candidate.ts'
import { pgState } from './pg.ts'
import { isPgliteTransaction, pgliteState } from './pglite.ts'
import { hasMethods, property } from './shape.ts'

const ENTITY_KIND = Symbol.for('drizzle:entityKind')
/** A class has few ancestors; whatever pretends to have more is not followed. */
const ANCESTORS_MAX = 10

export function recogniseDrizzle(value: unknown): Candidate | undefined {
  const kinds = kindsOf(value)
  const [kind] = kinds
  if (kind === undefined) return undefined
  const state = (): TransactionState => {
    if (!hasMethods(value, 'execute') || !kinds.some((one) => one.endsWith('Transaction'))) {
      return { problem: `this is a ${kind} of Drizzle and no transaction` }
    }
    if (!kinds.some((one) => one.startsWith('Pg'))) return { problem: `this ${kind} of Drizzle is not on PostgreSQL` }
    return driverState(property(property(value, 'session'), 'client'))
  }
  return {
    library: 'Drizzle',
    example: 'await db.transaction(async (tx) => { await mill.in(tx).enqueue(job, input) })',
    state,
    async run(text, params) {
      assert(hasMethods(value, 'execute'), `a ${kind} of Drizzle cannot execute`)
      return value.execute(statement(text, params))
    },
  }
}

/** From the class itself up to its oldest ancestor. */
function kindsOf(value: unknown): readonly string[] {
  const kinds: string[] = []
  let type = property(value, 'constructor')
  for (let depth = 0; depth < ANCESTORS_MAX && typeof type === 'function'; depth += 1) {
    const kind = property(type, ENTITY_KIND)
    if (typeof kind !== 'string') break
    kinds.push(kind)
    type = Object.getPrototypeOf(type)
  }
  return kinds
}

function driverState(client: unknown): TransactionState {
  const state = isPgliteTransaction(client) ? pgliteState(client) : pgState(client)
  return typeof state === 'object' ? { problem: 'this Drizzle transaction is over' } : state
}

/** What `execute` asks of a query made with `sql`: here it is text with parameters already. */
function statement(sql: string, params: readonly SqlParam[]) {
  return { getSQL: () => ({ toQuery: () => ({ sql, params: [...params] }) }) }
}
