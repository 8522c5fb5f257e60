// The two calls that may be made inside a transaction of the caller, whatever library it belongs to. They run where
// the caller's statements run, so errors are those of its library; only a missing schema gets a better message.
import { MillraceError, assert } from '../../core/errors.ts'
import type { Transition } from '../../core/transition.ts'
import type { InsideTransaction } from '../../store/ports.ts'
import { changesJson, verdictOf } from './change-rows.ts'
import { parseInsertReply } from './insert.ts'
import { jobsJson } from './insert-rows.ts'
import { sqlText } from './sql-text.ts'
import { transactionRunner } from './transactions/runner.ts'
import type { SqlRunner } from './transactions/runner.ts'
import { sqlStateOfAny } from './transactions/sql-state.ts'

/** `workerOf`: whose run a change ends, should the row not know. */
export function createInside(
  schema: string,
): (tx: unknown, workerOf?: (transition: Transition) => string | null) => InsideTransaction {
  const insert = sqlText('select millrace.insert_in_transaction($1::json)::text as reply', schema)
  const apply = sqlText('select millrace.apply_in_transaction($1::json)::text as reply', schema)

  return (tx, workerOf) => {
    const runner = transactionRunner(tx)
    return {
      async insert(jobs) {
        if (jobs.length === 0) return { ok: true, results: [] }
        return parseInsertReply(await ask(runner, insert, jobsJson(jobs), schema)).reply
      },
      async apply(transitions: readonly Transition[]) {
        if (transitions.length === 0) return []
        const texts = await ask(runner, apply, changesJson(transitions, workerOf), schema)
        return (JSON.parse(texts) as readonly string[]).map(verdictOf) // written by millrace.apply_in_transaction
      },
    }
  }
}

async function ask(runner: SqlRunner, sql: string, argument: string, schema: string): Promise<string> {
  let rows: Awaited<ReturnType<SqlRunner['query']>>
  try {
    rows = await runner.query(sql, [argument])
  } catch (error) {
    throw MISSING.has(sqlStateOfAny(error) ?? '') ? elsewhere(runner.library, schema, error) : error
  }
  const reply = rows[0]?.['reply']
  assert(typeof reply === 'string', `${runner.library} answered without the column that was asked for`)
  return reply
}

/** No such function, no such schema. */
const MISSING: ReadonlySet<string> = new Set(['42883', '3F000'])

function elsewhere(library: string, schema: string, cause: unknown): MillraceError {
  const message =
    `this ${library} transaction is on a database without the Millrace schema ${schema}, or with an older one: ` +
    'pass a transaction on the database that the jobs are kept in, or run `millrace migrate up` there'
  return new MillraceError('SCHEMA_TOO_OLD', message, { cause, details: { library, schema } })
}
