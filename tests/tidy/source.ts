// What the tidy test knows of the repository: its files, and the syntax tree of each TypeScript file,
// parsed by the parser that Vitest brings along, so that comments and strings never raise an alarm.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'vitest/node'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** A node of the tree, seen without its kind: walks look at `type` and a few fields by name. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly [field: string]: unknown
}

export interface Source {
  /** Relative to the root, with `/`. */
  readonly path: string
  readonly text: string
  /** Every node, parents before children. */
  readonly nodes: readonly Node[]
  /** `path:line` of a node, for messages. */
  at(node: Node): string
}

/** What git tracks or would track, so that a new file is checked before its first commit. */
export const REPOSITORY_FILES: readonly string[] = execFileSync(
  'git',
  ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
  { cwd: ROOT, encoding: 'utf8' },
)
  .split('\0')
  .filter((path) => path !== '' && isFile(path))

export function exists(path: string): boolean {
  return existsSync(join(ROOT, path))
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

export function filesIn(folder: string, ending: string): readonly string[] {
  return REPOSITORY_FILES.filter((path) => path.startsWith(`${folder}/`) && path.endsWith(ending))
}

const parsed = new Map<string, Source>()

export function parse(path: string): Source {
  const known = parsed.get(path)
  if (known !== undefined) return known
  const source = parseText(path, readText(path))
  parsed.set(path, source)
  return source
}

export function parseText(path: string, text: string): Source {
  const nodes: Node[] = []
  collect(parseAst(text, { lang: 'ts' }, path), nodes)
  return { path, text, nodes, at: ({ start }) => `${path}:${lineAt(text, start)}` }
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** The name of an identifier, `undefined` for anything else. */
export function nameOf(value: unknown): string | undefined {
  return isNode(value) && value.type === 'Identifier' && typeof value['name'] === 'string' ? value['name'] : undefined
}

/** The fixed text of a string or template literal; a template is known up to its first hole. */
export function textOf(value: unknown): string | undefined {
  if (!isNode(value)) return undefined
  if (value.type === 'Literal') return typeof value['value'] === 'string' ? value['value'] : undefined
  if (value.type !== 'TemplateLiteral' || !Array.isArray(value['quasis'])) return undefined
  const [first] = value['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return first?.value.cooked
}

/** `test` of `test`, `test.concurrent`, `test.each(rows)`, `test.each(rows)('…').x`. */
export function rootName(value: unknown): string | undefined {
  if (!isNode(value)) return undefined
  if (value.type === 'MemberExpression') return rootName(value['object'])
  if (value.type === 'CallExpression') return rootName(value['callee'])
  if (value.type === 'TaggedTemplateExpression') return rootName(value['tag'])
  return nameOf(value)
}

export interface Import {
  readonly from: string
  readonly typeOnly: boolean
  /** Names that are taken, as the other module calls them. */
  readonly names: readonly string[]
  readonly node: Node
}

const IMPORTING = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
])

export function importsOf({ nodes }: Source): readonly Import[] {
  return nodes.flatMap((node) => {
    const from = IMPORTING.has(node.type) ? textOf(node['source']) : undefined
    if (from === undefined) return []
    const specifiers = Array.isArray(node['specifiers']) ? (node['specifiers'] as readonly Node[]) : []
    const typeOnly =
      node.type === 'TSImportType' ||
      node['importKind'] === 'type' ||
      node['exportKind'] === 'type' ||
      (specifiers.length > 0 && specifiers.every((one) => one['importKind'] === 'type' || one['exportKind'] === 'type'))
    const names = specifiers.flatMap((one) => nameOf(one['imported']) ?? nameOf(one['local']) ?? [])
    return [{ from, typeOnly, names, node }]
  })
}

/** Names that the file declares at its top level. */
export function declarationsOf({ nodes }: Source): ReadonlySet<string> {
  const [program] = nodes
  const statements = program !== undefined && Array.isArray(program['body']) ? (program['body'] as readonly Node[]) : []
  const names = statements.flatMap((statement) => {
    const declaration = isNode(statement['declaration']) ? statement['declaration'] : statement
    const parts = Array.isArray(declaration['declarations'])
      ? (declaration['declarations'] as readonly Node[])
      : [declaration]
    return parts.map((part) => nameOf(part['id']))
  })
  return new Set(names.filter((name) => name !== undefined))
}

export function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1
  return line
}

function isFile(path: string): boolean {
  return statSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile() ?? false
}

function collect(value: unknown, into: Node[]): void {
  if (Array.isArray(value)) for (const item of value) collect(item, into)
  else if (isNode(value)) {
    into.push(value)
    for (const child of Object.values(value)) if (typeof child === 'object') collect(child, into)
  }
}
