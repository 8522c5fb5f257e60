// SQL files as text: which schema they speak of, what they say apart from comments and layout, and where one
// statement ends. In a file every object is written `millrace.x`; `:schema` stands for the schema as an
// identifier (`grant usage on schema :schema`) and `:'schema'` for its name as a string. Nothing else is
// replaced, and strings and comments are no exception, so a file writes `millrace.` for its objects only.
import { createHash } from 'node:crypto'
import { invalidOption } from '../../core/names.ts'

export const SCHEMA_DEFAULT = 'millrace'

/** Room is left below PostgreSQL's 63 for what is named after the schema: channels, roles. */
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,39}$/
const TAKEN = /^(?:pg_.*|information_schema|public)$/

export function checkSchemaName(value: unknown): string {
  if (typeof value === 'string' && SCHEMA_NAME.test(value) && !TAKEN.test(value)) return value
  throw invalidOption(
    'schema',
    value,
    '1-40 lower-case letters, digits and _ that do not start with a digit, and neither public nor a schema of the system',
  )
}

/** The text of a file for the schema it is to run in. */
export function sqlText(sql: string, schema: string): string {
  return sql
    .replace(/(?<!:):'schema'/g, `'${schema}'`)
    .replace(/(?<!:):schema\b/g, `"${schema}"`)
    .replace(/\bmillrace\./g, `"${schema}".`)
}

/** The same for every file that says the same: comments, line ends and layout outside of bodies do not count. */
export function sqlChecksum(sql: string): string {
  const words = tokensOf(sql.replaceAll('\r\n', '\n')).filter(({ kind }) => kind !== 'comment' && kind !== 'space')
  return createHash('sha256')
    .update(words.map(({ text }) => text).join(' '))
    .digest('hex')
    .slice(0, 32)
}

export interface Statement {
  /** Without comments, one space for each gap, without the semicolon. */
  readonly text: string
  /** The comments before and inside it, without their marks. */
  readonly comments: readonly string[]
  /** What a dollar-quoted string in it holds: the body of a function or of `do`. */
  readonly body: string | undefined
  /** Line of its first word, from 1. */
  readonly line: number
}

export function splitStatements(sql: string): readonly Statement[] {
  const statements: Statement[] = []
  let words: Token[] = []
  let comments: string[] = []
  let depth = 0
  const finish = (): void => {
    const [first] = words
    if (first !== undefined) {
      const body = words.find(({ kind }) => kind === 'dollar')?.text.replace(/^\$\w*\$|\$\w*\$$/g, '')
      statements.push({ text: joined(words), comments, body, line: lineAt(sql, first.at) })
    }
    words = []
    comments = []
    depth = 0
  }
  for (const token of tokensOf(sql)) {
    if (token.kind === 'comment') comments.push(token.text.replace(/^--|^\/\*|\*\/$/g, '').trim())
    else if (token.text === ';' && depth === 0) finish()
    else if (token.kind !== 'space' || words.length > 0) words.push(token)
    if (token.kind === 'word') depth = Math.max(0, depth + depthChange(token.text, depth, words))
  }
  finish()
  return statements
}

/** Semicolons inside `begin atomic … end` do not end the statement. */
function depthChange(word: string, depth: number, words: readonly Token[]): number {
  const lower = word.toLowerCase()
  if (lower === 'atomic') return previousWord(words) === 'begin' ? 1 : 0
  if (depth === 0) return 0
  return lower === 'case' ? 1 : lower === 'end' ? -1 : 0
}

function previousWord(words: readonly Token[]): string | undefined {
  return words
    .filter(({ kind }) => kind === 'word')
    .at(-2)
    ?.text.toLowerCase()
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

interface Token {
  readonly kind: 'comment' | 'space' | 'string' | 'dollar' | 'word' | 'other'
  readonly text: string
  readonly at: number
}

const TOKEN = new RegExp(
  [
    String.raw`(?<space>\s+)`,
    String.raw`(?<comment>--[^\n]*|/\*)`,
    String.raw`(?<string>[eE]'(?:[^'\\]|''|\\[^])*'|'(?:[^']|'')*'|"(?:[^"]|"")*")`,
    String.raw`(?<dollar>\$(?:[A-Za-z_]\w*)?\$)`,
    String.raw`(?<word>[A-Za-z_][\w$]*)`,
    String.raw`(?<other>[^])`,
  ].join('|'),
  'y',
)

function tokensOf(sql: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < sql.length) {
    TOKEN.lastIndex = at
    const groups = TOKEN.exec(sql)?.groups ?? {}
    const [kind, start] = Object.entries(groups).find(([, text]) => text !== undefined) ?? ['other', sql.slice(at)]
    const end = endOf(sql, at, kind as Token['kind'], start)
    tokens.push({ kind: kind as Token['kind'], text: sql.slice(at, end), at })
    at = end
  }
  return tokens
}

/** Block comments nest and dollar quotes end at their own mark: neither is a regular language. */
function endOf(sql: string, at: number, kind: Token['kind'], start: string): number {
  const after = at + start.length
  if (kind === 'dollar') {
    const close = sql.indexOf(start, after)
    return close === -1 ? sql.length : close + start.length
  }
  if (start !== '/*') return after
  const marks = /\/\*|\*\//g
  marks.lastIndex = after
  for (let depth = 1; ;) {
    const mark = marks.exec(sql)
    if (mark === null) return sql.length
    depth += mark[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
}

function joined(words: readonly Token[]): string {
  return words
    .map(({ kind, text }) => (kind === 'space' ? ' ' : text))
    .join('')
    .trim()
}
