// Runs SQL in the caller's own transaction, whatever library it belongs to. What is not an open transaction
// is refused before anything is sent: a job enqueued outside would survive the rollback it was meant to share.
import { assert } from '../../../core/errors.ts'
import type { Candidate, Recognise } from './candidate.ts'
import { recogniseDrizzle } from './drizzle.ts'
import { recogniseKnex } from './knex.ts'
import { recogniseKysely } from './kysely.ts'
import { recognisePg } from './pg.ts'
import { recognisePglite } from './pglite.ts'
import { recognisePostgresJs } from './postgres-js.ts'
import { recognisePrisma } from './prisma.ts'
import { notATransaction, unknownTransaction } from './refusal.ts'
import { property } from './shape.ts'

export interface SqlRunner {
  readonly library: string
  /**
   * One statement, with $1, $2 as placeholders. Cast what it returns to text or int, and name its columns in
   * one lower-case word: what becomes of other types and names is up to the library and its settings.
   */
  query(
    text: string,
    params: readonly (string | number | boolean | null)[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]>
}

const LIBRARIES: Readonly<Record<string, Recognise>> = {
  pg: recognisePg,
  'postgres.js': recognisePostgresJs,
  Drizzle: recogniseDrizzle,
  Kysely: recogniseKysely,
  Knex: recogniseKnex,
  Prisma: recognisePrisma,
  PGlite: recognisePglite,
}

/** Throws NOT_A_TRANSACTION now if that can be seen; `query` looks again, because transactions end. */
export function transactionRunner(tx: unknown): SqlRunner {
  const candidate = recognise(tx)
  refuseUnlessOpen(candidate)
  return {
    library: candidate.library,
    async query(text, params) {
      if (refuseUnlessOpen(candidate) === 'unknown') await askServer(candidate)
      return rowsOf(await candidate.run(throughText(text), params), candidate.library)
    },
  }
}

function recognise(tx: unknown): Candidate {
  for (const recogniseOne of Object.values(LIBRARIES)) {
    const candidate = recogniseOne(tx)
    if (candidate !== undefined) return candidate
  }
  throw unknownTransaction(tx, Object.keys(LIBRARIES))
}

function refuseUnlessOpen(candidate: Candidate): 'open' | 'unknown' {
  const state = candidate.state()
  if (typeof state === 'object') throw notATransaction(candidate, state.problem)
  return state
}

/**
 * LOCK TABLE is refused outside of a transaction block, in either protocol; inside, this one costs a round
 * trip and gets in nobody's way. Tried: `now() = statement_timestamp()`, which differ in autocommit too,
 * because the extended protocol takes them at different messages; SAVEPOINT, which needs a second trip.
 */
const PROBE = 'lock table pg_catalog.pg_am in access share mode'
const NO_ACTIVE_TRANSACTION = '25P01'

async function askServer(candidate: Candidate): Promise<void> {
  try {
    await candidate.run(PROBE, [])
  } catch (error) {
    // Drizzle wraps what its driver throws.
    const codes = [property(error, 'code'), property(property(error, 'cause'), 'code')]
    if (!codes.includes(NO_ACTIVE_TRANSACTION)) throw error
    throw notATransaction(candidate, `this ${candidate.library} transaction is over, or never began`, error)
  }
}

/** postgres.js would encode the text of a json parameter once more; of a text parameter it does not. */
function throughText(text: string): string {
  return text.replaceAll(/(\$\d+)::(jsonb?)\b/g, '$1::text::$2')
}

/** pg and its kin answer with `rows`, postgres.js and Prisma with the rows themselves. */
function rowsOf(result: unknown, library: string): readonly Readonly<Record<string, unknown>>[] {
  const rows = Array.isArray(result) ? result : property(result, 'rows')
  assert(Array.isArray(rows), `${library} answered a query without rows`)
  return rows
}
