// What a backend does with the schema when it starts: look, and by default bring it up to date.
import type { ClientBase } from 'pg'
import { EMBEDDED_SET, checkSet } from './migrate-set.ts'
import type { MigrationSet } from './migrate-set.ts'
import { readRecord, stateOf, tooNew, tooOld } from './migrate-state.ts'
import type { SchemaState } from './migrate-state.ts'
import { createMigrator } from './migrate.ts'
import type { MigratorOptions } from './migrate.ts'
import { storeError } from './pg-errors.ts'
import { SCHEMA_DEFAULT, checkSchemaName } from './sql-text.ts'

/** How the schema in the database compares with this package. Two or three small reads, no lock. */
export async function checkSchema(
  client: ClientBase,
  schema: string = SCHEMA_DEFAULT,
  set: MigrationSet = EMBEDDED_SET,
): Promise<SchemaState> {
  try {
    return stateOf(await readRecord(client, checkSchemaName(schema)), set)
  } catch (error) {
    throw storeError(error, `reading the version of schema ${schema}`)
  }
}

export interface EnsureOptions extends Omit<MigratorOptions, 'client'> {
  /** Used to look, and to migrate when there is no url. */
  readonly client: ClientBase
  /** `auto` migrates a schema that is missing or older; `check` refuses it. A newer one is always refused. */
  readonly migrate: 'auto' | 'check'
}

/** Returns when the schema is the one of this package, and raises SCHEMA_TOO_OLD or SCHEMA_TOO_NEW otherwise. */
export async function ensureSchema({ client, migrate, ...options }: EnsureOptions): Promise<void> {
  const schema = checkSchemaName(options.schema ?? SCHEMA_DEFAULT)
  const { migrations = EMBEDDED_SET.migrations, functions = EMBEDDED_SET.functions } = options
  const set = checkSet({ migrations, functions })
  const record = await readRecord(client, schema).catch((error: unknown) => {
    throw storeError(error, `reading the version of schema ${schema}`)
  })
  const state = stateOf(record, set)
  if (state === 'current') return
  if (state === 'newer') throw tooNew(record, set, schema)
  if (migrate === 'check') throw tooOld(record, set, schema)
  const migrator = createMigrator(options.url === undefined ? { ...options, client } : options)
  try {
    await migrator.up()
  } finally {
    await migrator.close()
  }
}
