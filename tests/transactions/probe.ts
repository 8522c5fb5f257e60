// A stand-in for the SQL function that enqueues: it writes rows, answers one line for each, and can fail.
import { expect } from 'vitest'
import { isMillraceError } from '../../src/core/errors.ts'
import type { MillraceError } from '../../src/core/errors.ts'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import type { SqlRunner } from '../../src/backends/postgres/transactions/runner.ts'

/** For a server or a PGlite on a busy machine. */
export const START_MAX_MS = 60_000

export const PROBE_SCHEMA = `
  create table probe (id text primary key, place serial);
  create function probe_insert(ids json) returns table (id text, outcome text) language plpgsql as $$
  #variable_conflict use_column
  begin
    return query
      with written as (insert into probe (id) select json_array_elements_text(ids) on conflict do nothing returning id)
      select one, case when one in (select id from written) then 'inserted' else 'already' end
      from json_array_elements_text(ids) as one;
  end $$;`

const INSERT = 'select id::text as id, outcome::text as outcome from probe_insert($1::json)'

export const PROBE_IDS = 'select id from probe order by place'

export function insert(runner: SqlRunner, ...ids: readonly string[]) {
  return runner.query(INSERT, [JSON.stringify(ids)])
}

/** Whichever of the two steps refuses. */
export async function refusalOf(tx: unknown): Promise<MillraceError> {
  const error = await caught(async () => insert(transactionRunner(tx), 'refused'))
  if (!isMillraceError(error, 'NOT_A_TRANSACTION')) throw error
  return error
}

/** What was passed, and the line that was meant. */
export async function expectRefusal(tx: unknown, problem: string, example: string): Promise<void> {
  const { message, details } = await refusalOf(tx)
  expect(message).toBe(`${problem}; pass an open transaction: \`${example}\``)
  expect(details).toEqual({ library: expect.any(String) })
}

export async function caught(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
