// The SQL files of the Postgres backend as one TypeScript module, so that bundlers and `dist` need no loose
// files. `scripts/generate.ts` writes it; tests/postgres/migrate-files.test.ts compares it with what is on disk.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src/backends/postgres')

const WIDTH = 120

export const EMBEDDED_SQL = { path: 'src/backends/postgres/sql.generated.ts', render: renderSql }

/** One line per file: a text that is read in its .sql file needs no second readable copy. */
export function renderSql(): string {
  const migrations = readMigrations().map(
    ({ version, name, up, down }) =>
      `  {\n    version: ${version},\n    name: ${literal(name)},\n    up: ${literal(up)},\n    down: ${literal(down)},\n  },\n`,
  )
  const functions = namesIn('sql').map(
    (name) => `  {\n    name: ${literal(name.replace(/\.sql$/, ''))},\n    sql: ${literal(read('sql', name))},\n  },\n`,
  )
  return `// Generated from migrations/, sql/ and roles/ by \`npm run generate\`. Do not edit.
import type { FunctionFile, Migration } from './migrate-set.ts'

export const MIGRATIONS: readonly Migration[] = [${block(migrations)}]

export const FUNCTIONS: readonly FunctionFile[] = [${block(functions)}]

${constant('export const GRANTS_SQL =', literal(read('roles', 'grants.sql')))}
`
}

interface MigrationFiles {
  readonly version: number
  readonly name: string
  readonly up: string
  readonly down: string
}

function readMigrations(): readonly MigrationFiles[] {
  const names = namesIn('migrations')
  const strange = names.filter((name) => !/^\d{4}_[a-z0-9_]+\.(?:up|down)\.sql$/.test(name))
  if (strange.length > 0) throw new Error(`not NNNN_name.up.sql or .down.sql: ${strange.join(', ')}`)
  return names
    .filter((name) => name.endsWith('.up.sql'))
    .map((name, index) => {
      const version = Number(name.slice(0, 4))
      if (version !== index + 1) throw new Error(`${name}: the next version is ${index + 1}`)
      const down = name.replace(/\.up\.sql$/, '.down.sql')
      if (!names.includes(down)) throw new Error(`${name} has no ${down}`)
      return {
        version,
        name: name.slice(5, -'.up.sql'.length),
        up: read('migrations', name),
        down: read('migrations', down),
      }
    })
}

function namesIn(part: string): readonly string[] {
  const path = join(folder, part)
  return existsSync(path)
    ? readdirSync(path)
        .filter((name) => name.endsWith('.sql'))
        .sort()
    : []
}

function read(part: string, name: string): string {
  return readFileSync(join(folder, part, name), 'utf8').replaceAll('\r\n', '\n')
}

/** Quoted as the formatter would: single quotes, unless the text has more of them than of double ones. */
export function literal(text: string): string {
  const quote = text.split("'").length > text.split('"').length ? '"' : "'"
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
  return `${quote}${inside.replaceAll(quote, `\\${quote}`)}${quote}`
}

function block(entries: readonly string[]): string {
  return entries.length === 0 ? '' : `\n${entries.join('')}`
}

/** The formatter breaks after `=` when the line would be too long. */
function constant(head: string, text: string): string {
  return head.length + text.length < WIDTH ? `${head} ${text}` : `${head}\n  ${text}`
}
