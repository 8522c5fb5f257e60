// Where a schema stands, for `migrate status` and `doctor`.
import type { ClientBase } from 'pg'
import { latestOf } from './migrate-set.ts'
import type { MigrationSet } from './migrate-set.ts'
import { PIN_SEARCH_PATH, READ_HISTORY } from './migrate-sql.ts'
import { catalogDrift, functionsFit, historyDrift, readRecord } from './migrate-state.ts'
import type { AppliedMigration } from './migrate-state.ts'
import { sqlText } from './sql-text.ts'

export interface MigrationStatus {
  /** The version of the database; 0: nothing is there. */
  readonly version: number
  /** The version that this package brings. */
  readonly latest: number
  readonly applied: readonly AppliedMigration[]
  readonly pending: readonly { readonly version: number; readonly name: string }[]
  /** Are the functions those of this package? */
  readonly functions: 'current' | 'outdated'
  /** What differs from what this package wrote, each with what to do. */
  readonly drift: readonly string[]
  /** The last events, newest first. */
  readonly history: readonly (AppliedMigration & { readonly event: 'up' | 'down' | 'functions' })[]
}

const HISTORY_MAX = 100

export async function readStatus(client: ClientBase, schema: string, set: MigrationSet): Promise<MigrationStatus> {
  await client.query('begin read only')
  try {
    await client.query(PIN_SEARCH_PATH)
    const record = await readRecord(client, schema)
    const pending = set.migrations.filter(({ version }) => version > record.version)
    const inDatabase = record.isInstalled ? await catalogDrift(client, schema, record) : []
    return {
      version: record.version,
      latest: latestOf(set),
      applied: record.applied.map(({ version, name, atMs, by }) => ({ version, name, atMs, by })),
      pending: pending.map(({ version, name }) => ({ version, name })),
      functions: functionsFit(record, set) ? 'current' : 'outdated',
      drift: [...historyDrift(record, set), ...inDatabase],
      history: record.isInstalled ? await readHistory(client, schema) : [],
    }
  } finally {
    await client.query('rollback').catch(() => undefined)
  }
}

async function readHistory(client: ClientBase, schema: string): Promise<MigrationStatus['history']> {
  const { rows } = await client.query<MigrationStatus['history'][number]>(sqlText(READ_HISTORY, schema), [HISTORY_MAX])
  return rows
}
