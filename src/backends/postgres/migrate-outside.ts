// A migration that PostgreSQL refuses inside a transaction: `create index concurrently`. A second connection
// keeps the lock of the schema meanwhile. There is no lock_timeout: such a statement waits for others but holds
// up neither readers nor writers. One that broke off leaves an index that is not valid, and is cleared first.
import type { ClientBase } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import { bounded } from '../../runtime/bounded.ts'
import { blockedError, lockHolders } from './migrate-blockers.ts'
import { concurrentIndex } from './migrate-set.ts'
import { begin, isBlocked, outOfTries, pause, runScript } from './migrate-step.ts'
import type { StepContext, StepResult } from './migrate-step.ts'

const OUTSIDE_TIMEOUT_MS = 6 * 60 * 60_000

export interface OutsideStep {
  readonly title: string
  readonly isDue: (client: ClientBase) => Promise<boolean>
  /** The one statement, for this schema. */
  readonly text: string
  /** The one statement without comments, to find the name of its index. */
  readonly plain: string
  readonly record: string
}

export async function runOutside(context: StepContext, step: OutsideStep): Promise<StepResult> {
  const { client, openSecond } = context
  if (openSecond === undefined) {
    const message = `${step.title} runs outside a transaction and needs a second connection: create the migrator with a url`
    throw new MillraceError('NOT_SUPPORTED', message)
  }
  const holder = await openSecond()
  if (!(await begin(context, holder, 0))) return 'busy'
  try {
    if (!(await step.isDue(holder))) return 'not-due'
    await build(context, step)
    await client.query(step.record)
    return 'done'
  } finally {
    await holder.query('commit').catch(() => undefined)
  }
}

async function build(context: StepContext, step: OutsideStep): Promise<void> {
  const { client, schema, limits, runtime } = context
  const index = concurrentIndex(step.plain)
  for (let attempt = 1; ; attempt++) {
    try {
      if (index !== undefined) await dropHalfBuilt(client, schema, index)
      await bounded(runtime.clock, OUTSIDE_TIMEOUT_MS, step.title, runScript(client, step.text, step.title))
      break
    } catch (error) {
      if (!isBlocked(error)) throw error
      if (attempt >= limits.attemptsMax) throw outOfTries(step.title, context, await lockHolders(client, schema), error)
      await pause(context, attempt)
    }
  }
  if (index !== undefined && (await stateOfIndex(client, schema, index)) !== 'valid') {
    throw blockedError(`${step.title}: index ${index} is still being built by another session`, [])
  }
}

async function dropHalfBuilt(client: ClientBase, schema: string, index: string): Promise<void> {
  if ((await stateOfIndex(client, schema, index)) === 'broken') {
    await client.query(`drop index concurrently if exists "${schema}"."${index}"`)
  }
}

async function stateOfIndex(client: ClientBase, schema: string, index: string): Promise<string | undefined> {
  const { rows } = await client.query<{ state: 'valid' | 'building' | 'broken' }>(
    `select case when i.indisvalid then 'valid'
        when exists (select from pg_stat_progress_create_index p where p.index_relid = i.indexrelid) then 'building'
        else 'broken' end as state
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relnamespace = to_regnamespace($1) and c.relname = $2`,
    [schema, index],
  )
  return rows[0]?.state
}
