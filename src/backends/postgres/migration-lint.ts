// What a migration must not do to a database that is in use: rewrite a table, scan or index one under a lock that
// stops writers, or take away what running processes still use. The rules in prose: docs/migrations.md. A table that
// the same migration creates is empty and unseen, so most rules do not concern it.
import { concurrentIndex, outsideStatement, titleOf } from './migrate-set.ts'
import type { Migration } from './migrate-set.ts'
import { splitStatements } from './sql-text.ts'
import type { Statement } from './sql-text.ts'

/** `0002_tags.up.sql:3 table-rewrite: …` for every statement that breaks a rule. */
export function lintMigrations(migrations: readonly Migration[]): readonly string[] {
  const checks = new Map<string, NotNullCheck>()
  return migrations.flatMap((migration) => {
    const file = `${titleOf(migration)}.up.sql`
    const statements = splitStatements(migration.up).flatMap(withBody)
    const context: Context = {
      created: createdIn(statements),
      added: addedIn(statements),
      checks,
      isAlone: isAlone(migration),
    }
    const problems = statements.flatMap((statement) =>
      RULES.filter(({ breaks }) => breaks(statement, context)).map(
        ({ name, says }) => `${file}:${statement.line} ${name}: ${says}`,
      ),
    )
    noteChecks(statements, checks)
    return problems
  })
}

interface NotNullCheck {
  readonly column: string
  readonly isValid: boolean
}

interface Context {
  /** Tables that this migration creates. */
  readonly created: ReadonlySet<string>
  /** Constraints that this migration adds, as `table.constraint`. */
  readonly added: ReadonlySet<string>
  /** `check (column is not null)` of earlier migrations, as `table.constraint`. */
  readonly checks: ReadonlyMap<string, NotNullCheck>
  /** The migration is one statement that runs outside a transaction. */
  readonly isAlone: boolean
}

interface Rule {
  readonly name: string
  readonly says: string
  readonly breaks: (statement: Statement, context: Context) => boolean
}

/** Defaults that PostgreSQL computes once for all rows: constants and what is stable within a statement. */
const CHEAP_DEFAULT =
  /^(?:[-+]?[\d.]+|'(?:[^']|'')*'|true|false|null|now\(\)|current_timestamp|transaction_timestamp\(\)|array\[\])(?:::[\w ]+(?:\[\])?)?$/i

const RULES: readonly Rule[] = [
  {
    name: 'table-rewrite',
    says: 'rewrites the whole table under an exclusive lock; add a new column, copy in batches, then contract',
    breaks: (statement, context) =>
      /^(?:cluster|vacuum)\b/i.test(statement.text) ||
      onExisting(statement, context, /\bset (?:logged|unlogged|access method|tablespace)\b/i) ||
      onExisting(statement, context, /\balter (?:column )?"?\w+"? (?:set data )?type\b/i),
  },
  {
    name: 'volatile-default',
    says: 'a default that differs per row rewrites the table; add the column without it and fill it in batches',
    breaks: (statement, context) => addedColumns(statement, context).some(rewrites),
  },
  {
    name: 'column-constraint',
    says: 'checks every row under an exclusive lock; add the column alone, then the constraint as `not valid`',
    breaks: (statement, context) =>
      addedColumns(statement, context).some(
        (column) =>
          /\b(?:references|unique|primary key|check)\b/i.test(column) ||
          (/\bnot null\b/i.test(column) && !/\bdefault\b/i.test(column)),
      ),
  },
  {
    name: 'blocking-index',
    says: 'stops all writers while it builds; use `create index concurrently`, alone in its migration',
    breaks: ({ text }, { created }) => {
      const index = /^create (?:unique )?index (?!concurrently\b).*?\bon (?:only )?(\S+)/i.exec(text)
      return (index !== null && !created.has(plain(index[1]))) || /^reindex\b(?!.*\bconcurrently\b)/i.test(text)
    },
  },
  {
    name: 'concurrent-index',
    says: 'must be alone in a migration marked `-- millrace: outside a transaction`, and say `if not exists`',
    breaks: ({ text }, { isAlone }) =>
      /\bindex concurrently\b/i.test(text) &&
      (!isAlone || (concurrentIndex(text) !== undefined && !/\bif not exists\b/i.test(text))),
  },
  {
    name: 'validated-constraint',
    says: 'checks every row under a lock; add it as `not valid`, and validate it in a later migration',
    breaks: (statement, context) =>
      onExisting(
        statement,
        context,
        /\badd (?:constraint "?\w+"? )?(?:check|foreign key|unique|primary key|exclude|not null)\b/i,
      ) && !/\bnot valid\b|\busing index\b/i.test(statement.text),
  },
  {
    name: 'validate-too-early',
    says: 'the lock of the `add constraint` above is still held; validate in a later migration',
    breaks: ({ text }, { added }) => {
      const constraint = /\bvalidate constraint "?(\w+)"?/i.exec(text)?.[1]
      return constraint !== undefined && added.has(`${tableOf(text)}.${constraint}`)
    },
  },
  {
    name: 'set-not-null',
    says: 'scans the table under an exclusive lock, unless a check `is not null` was validated by an earlier migration',
    breaks: (statement, context) => {
      if (!onExisting(statement, context, /set not null/i)) return false
      const table = tableOf(statement.text)
      const valid = [...context.checks].filter(([id, { isValid }]) => isValid && id.startsWith(`${table}.`))
      const columns = [...statement.text.matchAll(/\balter (?:column )?"?(\w+)"? set not null\b/gi)]
      return columns.some(([, column]) => !valid.some(([, check]) => check.column === column))
    },
  },
  {
    name: 'contract',
    says: 'running processes may still use it; say since when nobody does: `-- contract: unused since 0.4`',
    breaks: (statement, context) =>
      (onExisting(
        statement,
        context,
        /\bdrop (?:column )?(?!constraint\b|default\b|not null\b|identity\b|expression\b)"?\w+|\brename\b/i,
      ) ||
        /^drop (?:table|type|sequence)\b|^alter (?:type|index|sequence|view|function|schema)\b.*\brename\b/i.test(
          statement.text,
        )) &&
      !statement.comments.some((comment) => /^contract:\s*\S/.test(comment)),
  },
  {
    name: 'enum',
    says: 'values of an enum cannot be removed, nor used in the transaction that adds them; use text or smallint',
    breaks: ({ text }) => /^create type .* as enum\b|^alter type .* add value\b/i.test(text),
  },
  {
    name: 'lock-table',
    says: 'holds up everybody until the migration ends; take the lock with the statement that needs it',
    breaks: ({ text }) => /(?:^|\bbegin )lock (?:table )?\w/i.test(text),
  },
  {
    name: 'transaction',
    says: 'the runner begins and ends the transaction of a migration',
    breaks: ({ text }) =>
      /^(?:begin|start transaction|commit|end|rollback|savepoint|prepare transaction)(?: work| transaction)?$/i.test(
        text,
      ),
  },
  {
    name: 'session-setting',
    says: 'stays behind on a pooled connection; use `set local`',
    breaks: ({ text }) => /^set (?!local\b|constraints\b)/i.test(text),
  },
]

function onExisting({ text }: Statement, { created }: Context, words: RegExp): boolean {
  return /\balter table\b/i.test(text) && words.test(text) && !created.has(tableOf(text))
}

/** The definitions of columns that are added to tables which exist. */
function addedColumns(statement: Statement, context: Context): readonly string[] {
  if (!onExisting(statement, context, /\badd\b/i)) return []
  return actionsOf(statement.text).flatMap((action) => {
    const column =
      /^add (?:column )?(?:if not exists )?(?!constraint\b|check\b|foreign\b|unique\b|primary\b|exclude\b|not null\b)(.+)$/i.exec(
        action,
      )
    return column?.[1] ?? []
  })
}

function rewrites(column: string): boolean {
  if (/\b(?:small|big)?serial\d?\b|\bgenerated (?:always|by default)\b/i.test(column)) return true
  const value =
    /\bdefault (.+?)(?: (?:not null|null|constraint|check|references|unique|primary key|collate)\b.*)?$/i.exec(
      column,
    )?.[1]
  return value !== undefined && !CHEAP_DEFAULT.test(value)
}

/** The actions of one `alter table`, split at commas outside of parentheses and strings. */
function actionsOf(text: string): readonly string[] {
  const actions: string[] = []
  let depth = 0
  let current = ''
  for (const [piece] of text
    .replace(/^.*?\balter table (?:if exists )?(?:only )?\S+ /i, '')
    .matchAll(/'(?:[^']|'')*'|[^]/g)) {
    if (/[([]/.test(piece[0] ?? '')) depth += 1
    else if (/[)\]]/.test(piece[0] ?? '')) depth -= 1
    if (piece === ',' && depth === 0) {
      actions.push(current.trim())
      current = ''
    } else current += piece
  }
  return [...actions, current.trim()]
}

/** The statements in the body of a `do` are checked like any other. */
function withBody(statement: Statement): readonly Statement[] {
  if (!/^do\b/i.test(statement.text) || statement.body === undefined) return [statement]
  const { comments, line } = statement
  const inner = splitStatements(statement.body).map((one) => ({
    ...one,
    comments: [...comments, ...one.comments],
    line: line + one.line - 1,
  }))
  return inner.filter(({ text }) => !/^(?:begin|end)$/i.test(text))
}

function createdIn(statements: readonly Statement[]): ReadonlySet<string> {
  return new Set(
    statements.flatMap(({ text }) => {
      const table = /\bcreate (?:unlogged )?table (?:if not exists )?([^\s(]+)/i.exec(text)?.[1]
      return table === undefined ? [] : [plain(table)]
    }),
  )
}

function addedIn(statements: readonly Statement[]): ReadonlySet<string> {
  return new Set(
    statements.flatMap(({ text }) =>
      [...text.matchAll(/\badd constraint "?(\w+)"?/gi)].map(([, name]) => `${tableOf(text)}.${name}`),
    ),
  )
}

function noteChecks(statements: readonly Statement[], checks: Map<string, NotNullCheck>): void {
  for (const { text } of statements) {
    const added = /\badd constraint "?(\w+)"? check \(+\s*"?(\w+)"? is not null\s*\)+( not valid)?/i.exec(text)
    if (added !== null) {
      checks.set(`${tableOf(text)}.${added[1]}`, { column: added[2] ?? '', isValid: added[3] === undefined })
    }
    const validated = `${tableOf(text)}.${/\bvalidate constraint "?(\w+)"?/i.exec(text)?.[1]}`
    const known = checks.get(validated)
    if (known !== undefined) checks.set(validated, { ...known, isValid: true })
  }
}

function isAlone({ up }: Migration): boolean {
  try {
    return outsideStatement(up) !== undefined
  } catch {
    return false
  }
}

function tableOf(text: string): string {
  return plain(/\balter table (?:if exists )?(?:only )?([^\s(]+)/i.exec(text)?.[1])
}

function plain(name: string | undefined): string {
  return (name ?? '').replaceAll('"', '').replace(/\(.*$/, '').toLowerCase()
}
