// The migrations and functions that a package brings: data, so that tests and tools can bring their own.
import { createHash } from 'node:crypto'
import { MillraceError } from '../../core/errors.ts'
import { FUNCTIONS, MIGRATIONS } from './sql.generated.ts'
import { splitStatements, sqlChecksum } from './sql-text.ts'
import type { Statement } from './sql-text.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly up: string
  readonly down: string
}

/** Functions, views and triggers, each as `create or replace`; all files are run again when one has changed. */
export interface FunctionFile {
  readonly name: string
  readonly sql: string
}

export interface MigrationSet {
  /** Rising by one from 1. */
  readonly migrations: readonly Migration[]
  readonly functions: readonly FunctionFile[]
}

export const EMBEDDED_SET: MigrationSet = { migrations: MIGRATIONS, functions: FUNCTIONS }

export function checkSet(set: MigrationSet): MigrationSet {
  for (const [index, { version, name }] of set.migrations.entries()) {
    if (version === index + 1) continue
    throw new MillraceError('INVALID_OPTION', `migration ${version}_${name} stands where version ${index + 1} belongs`)
  }
  return set
}

export function latestOf({ migrations }: MigrationSet): number {
  return migrations.at(-1)?.version ?? 0
}

/** `0002_add_tags`, as its files are called. */
export function titleOf({ version, name }: Pick<Migration, 'version' | 'name'>): string {
  return `${String(version).padStart(4, '0')}_${name}`
}

/** Reading all the SQL takes as long as the rest of a start; the files of a package never change. */
const checksums = new WeakMap<readonly FunctionFile[], string>()

export function functionsChecksum({ functions }: MigrationSet): string {
  const known = checksums.get(functions)
  if (known !== undefined) return known
  const hash = createHash('sha256')
  for (const { name, sql } of functions) hash.update(`${name} ${sqlChecksum(sql)}\n`)
  const checksum = hash.digest('hex').slice(0, 32)
  checksums.set(functions, checksum)
  return checksum
}

const OUTSIDE = /^\s*millrace: outside a transaction\b/

/**
 * `create index concurrently` cannot run in a transaction. A file whose first comment says
 * `-- millrace: outside a transaction` holds exactly one such statement, and the runner guards it otherwise.
 */
export function outsideStatement(sql: string): Statement | undefined {
  const statements = splitStatements(sql)
  const [first] = statements
  if (first === undefined || !first.comments.some((comment) => OUTSIDE.test(comment))) return undefined
  if (statements.length === 1) return first
  throw new MillraceError('INVALID_OPTION', 'a migration outside a transaction must be exactly one statement')
}

/** The index that a statement builds without a transaction; it may lie there half built from an earlier try. */
export function concurrentIndex(statement: string): string | undefined {
  return /^create (?:unique )?index concurrently (?:if not exists )?"?(\w+)"? on\b/i.exec(statement)?.[1]
}
