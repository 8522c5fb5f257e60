// What a database says about its own schema, and how that compares with what this package brings.
import type { ClientBase } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import { functionsChecksum, latestOf, titleOf } from './migrate-set.ts'
import type { MigrationSet } from './migrate-set.ts'
import { READ_APPLIED, READ_CHANGED, READ_FUNCTIONS, READ_INVALID_INDEXES } from './migrate-sql.ts'
import { sqlChecksum, sqlText } from './sql-text.ts'

export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly atMs: number
  /** User of the database, host and process. */
  readonly by: string
}

export interface SchemaRecord {
  readonly isInstalled: boolean
  /** The highest version in force; 0: none. */
  readonly version: number
  readonly applied: readonly (AppliedMigration & { readonly checksum: string })[]
  /** The functions as they were last created or, with no objects, dropped; undefined: there never were any. */
  readonly functions: FunctionsRecord | undefined
  readonly serverMajor: number
}

interface FunctionsRecord {
  readonly checksum: string
  readonly serverMajor: number
  readonly objects: readonly { readonly kind: string; readonly id: string; readonly hash: string }[]
}

export type SchemaState = 'current' | 'missing' | 'older' | 'newer' | 'functions-differ'

/**
 * Read as rows, not with to_regclass: that answers from a cache of the session, which within a transaction may still
 * say "no such schema" when another process has just created it.
 */
const IS_INSTALLED = `select exists (
    select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relname = 'schema_migrations'
  ) as "isInstalled", current_setting('server_version_num')::int / 10000 as "serverMajor"`

export async function readRecord(client: ClientBase, schema: string): Promise<SchemaRecord> {
  const { rows } = await client.query<{ isInstalled: boolean; serverMajor: number }>(IS_INSTALLED, [schema])
  const { isInstalled = false, serverMajor = 0 } = rows[0] ?? {}
  if (!isInstalled) return { isInstalled, version: 0, applied: [], functions: undefined, serverMajor }
  const applied = await client.query<SchemaRecord['applied'][number]>(sqlText(READ_APPLIED, schema))
  const functions = await client.query<FunctionsRecord>(sqlText(READ_FUNCTIONS, schema))
  return {
    isInstalled,
    version: applied.rows.at(-1)?.version ?? 0,
    applied: applied.rows,
    functions: functions.rows[0],
    serverMajor,
  }
}

export function stateOf(record: SchemaRecord, set: MigrationSet): SchemaState {
  const latest = latestOf(set)
  if (record.version > latest) return 'newer'
  if (record.version < latest) return record.isInstalled ? 'older' : 'missing'
  return functionsFit(record, set) ? 'current' : 'functions-differ'
}

/** After an upgrade of the server the texts of its catalog may differ, so they are recorded anew. */
export function functionsFit({ functions, serverMajor }: SchemaRecord, set: MigrationSet): boolean {
  if (functions === undefined) return set.functions.length === 0
  return functions.checksum === functionsChecksum(set) && functions.serverMajor === serverMajor
}

export function tooNew(record: SchemaRecord, set: MigrationSet, schema: string): MillraceError {
  return new MillraceError(
    'SCHEMA_TOO_NEW',
    `schema ${schema} is at version ${record.version}, but this package knows versions up to ${latestOf(set)}: upgrade the package`,
    { details: { schema, version: record.version, latest: latestOf(set) } },
  )
}

export function tooOld(record: SchemaRecord, set: MigrationSet, schema: string): MillraceError {
  const found = !record.isInstalled
    ? `schema ${schema} is missing`
    : record.version < latestOf(set)
      ? `schema ${schema} is at version ${record.version}, but this package needs ${latestOf(set)}`
      : `the functions of schema ${schema} are not those of this package`
  return new MillraceError('SCHEMA_TOO_OLD', `${found}: run \`millrace migrate up\``, {
    details: { schema, version: record.version, latest: latestOf(set) },
  })
}

/** Differences between the history in the database and the migrations of this package. */
export function historyDrift(record: SchemaRecord, set: MigrationSet): readonly string[] {
  const applied = new Map(record.applied.map((one) => [one.version, one]))
  const newer =
    record.version > latestOf(set) ? [`version ${record.version} is newer than this package: upgrade it`] : []
  const changed = set.migrations.flatMap((migration) => {
    const title = titleOf(migration)
    const found = applied.get(migration.version)
    if (found === undefined) {
      return migration.version < record.version
        ? [`${title} was never applied, though ${record.version} was: go down to ${migration.version - 1}, then up`]
        : []
    }
    if (found.name !== migration.name) {
      return [
        `version ${migration.version} was applied as ${titleOf(found)}, but is ${title} here: is this the same package?`,
      ]
    }
    return found.checksum === sqlChecksum(migration.up)
      ? []
      : [
          `${title} was changed after it was applied: restore its text, or go down to ${migration.version - 1} and up again`,
        ]
  })
  return [...newer, ...changed]
}

/** Functions, views and triggers that somebody changed by hand, and indexes that were never finished. */
export async function catalogDrift(
  client: ClientBase,
  schema: string,
  record: SchemaRecord,
): Promise<readonly string[]> {
  const { functions, serverMajor } = record
  const indexes = await client.query<{ name: string }>(sqlText(READ_INVALID_INDEXES, schema))
  const invalid = indexes.rows.map(({ name }) => `index ${name} is not valid: \`drop index ${name}\`, then migrate up`)
  if (functions === undefined || functions.serverMajor !== serverMajor) return invalid
  const { rows } = await client.query<{ kind: string; id: string; isMissing: boolean }>(sqlText(READ_CHANGED, schema), [
    JSON.stringify(functions.objects),
  ])
  const changed = rows.map(
    ({ kind, id, isMissing }) =>
      `${kind} ${id} ${isMissing ? 'is missing' : 'was changed by hand'}: \`millrace migrate up --functions\` creates it again`,
  )
  return [...changed, ...invalid]
}
