// What to do next to bring a schema to a version, and the SQL of each step. Decided anew before every step
// from what the database says, so a process that waited goes on wherever the other one stopped.
import { MillraceError } from '../../core/errors.ts'
import { functionsChecksum, latestOf, outsideStatement, titleOf } from './migrate-set.ts'
import type { Migration, MigrationSet } from './migrate-set.ts'
import { functionsFit, historyDrift, tooNew } from './migrate-state.ts'
import type { SchemaRecord } from './migrate-state.ts'
import * as sql from './migrate-sql.ts'
import { sqlChecksum } from './sql-text.ts'
import type { Statement } from './sql-text.ts'

export type Planned =
  | { readonly kind: 'up'; readonly migration: Migration }
  | { readonly kind: 'down'; readonly migration: Migration; readonly dropsFunctions: boolean }
  | { readonly kind: 'functions'; readonly version: number }
  | { readonly kind: 'drop-functions'; readonly version: number }
  /** Back at 0: the books and the schema go. */
  | { readonly kind: 'remove'; readonly dropsFunctions: boolean }

export type Direction = 'up' | 'down'

export function planUp(record: SchemaRecord, set: MigrationSet, target: number, schema: string): Planned | undefined {
  if (record.version > latestOf(set)) throw tooNew(record, set, schema)
  const migration = set.migrations.find(({ version }) => version > record.version && version <= target)
  if (migration !== undefined) {
    const drift = historyDrift(record, set)
    if (drift.length > 0) throw driftError(schema, drift)
    return { kind: 'up', migration }
  }
  const isLatest = record.version === latestOf(set)
  return isLatest && !functionsFit(record, set) ? { kind: 'functions', version: record.version } : undefined
}

export function planDown(record: SchemaRecord, set: MigrationSet, target: number, schema: string): Planned | undefined {
  if (record.version > latestOf(set)) throw tooNew(record, set, schema)
  const dropsFunctions = (record.functions?.objects.length ?? 0) > 0
  if (record.version > target) {
    const migration = set.migrations[record.version - 1]
    if (migration === undefined) throw tooNew(record, set, schema)
    const isOutside = outsideStatement(migration.down) !== undefined
    if (isOutside && dropsFunctions) return { kind: 'drop-functions', version: record.version }
    return { kind: 'down', migration, dropsFunctions }
  }
  return target === 0 && record.isInstalled ? { kind: 'remove', dropsFunctions } : undefined
}

export function titleOfStep(planned: Planned): string {
  switch (planned.kind) {
    case 'up':
    case 'down':
      return `migration ${titleOf(planned.migration)} ${planned.kind}`
    case 'functions':
      return 'creating the functions'
    case 'drop-functions':
      return 'dropping the functions'
    case 'remove':
      return 'removing the schema'
  }
}

export interface Part {
  /** The file, for messages; undefined: our own books. */
  readonly title?: string
  readonly text: string
}

/** The statements of a step in order, before `sqlText`. */
export function partsOf(planned: Planned, set: MigrationSet, by: string | undefined): readonly Part[] {
  switch (planned.kind) {
    case 'up': {
      const { migration } = planned
      const books = migration.version === 1 ? [{ text: sql.BOOTSTRAP }] : []
      return [...books, { title: titleOfStep(planned), text: migration.up }, { text: eventOf(planned, by) }]
    }
    case 'down': {
      const { migration, dropsFunctions } = planned
      const dropped = dropsFunctions ? dropParts(migration.version, by) : []
      return [...dropped, { title: titleOfStep(planned), text: migration.down }, { text: eventOf(planned, by) }]
    }
    case 'functions':
      return [
        { text: sql.BOOTSTRAP },
        { text: sql.REMEMBER_CATALOG },
        ...set.functions.map((file) => ({ title: `functions ${file.name}`, text: file.sql })),
        { text: sql.DROP_LEFT_OVER },
        { text: sql.CLOSE_FUNCTIONS },
        { text: sql.recordFunctions(planned.version, functionsChecksum(set), by) },
      ]
    case 'drop-functions':
      return dropParts(planned.version, by)
    case 'remove':
      return [...(planned.dropsFunctions ? dropParts(0, by) : []), { text: sql.REMOVE_BOOKS }]
  }
}

/** The statement of a step that runs outside a transaction. */
export function outsideOf(planned: Planned): (Statement & { readonly sql: string }) | undefined {
  if (planned.kind !== 'up' && planned.kind !== 'down') return undefined
  const text = planned.migration[planned.kind]
  const statement = outsideStatement(text)
  return statement === undefined ? undefined : { ...statement, sql: text }
}

export function eventOf(planned: Extract<Planned, { readonly migration: Migration }>, by: string | undefined): string {
  const { version, name, up } = planned.migration
  return sql.recordEvent({ event: planned.kind, version, name, checksum: sqlChecksum(up) }, by)
}

function dropParts(version: number, by: string | undefined): readonly Part[] {
  return [
    { text: sql.DROP_FUNCTIONS },
    { text: sql.recordFunctions(version, functionsChecksum({ migrations: [], functions: [] }), by) },
  ]
}

function driftError(schema: string, drift: readonly string[]): MillraceError {
  return new MillraceError('SCHEMA_DRIFT', `schema ${schema} does not fit this package: ${drift.join('; ')}`, {
    details: { schema, drift },
  })
}
