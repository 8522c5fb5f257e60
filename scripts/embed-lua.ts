// The Lua files of a backend as one TypeScript module, so that bundlers and `dist` need no loose files. A line
// `--@include name` stands for the text of `name.lua`, once per script. Files whose name begins with `_` are parts only.
// `scripts/generate.ts` writes it; tests/redis/lua-files.test.ts compares it with what is on disk.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { literal } from './embed-sql.ts'

const WIDTH = 120
const SHORT_NAME = 4

const root = dirname(dirname(fileURLToPath(import.meta.url)))

export const EMBEDDED_LUA = ['redis', 'hybrid']
  .map((backend) => `src/backends/${backend}`)
  .filter((folder) => existsSync(join(root, folder, 'lua')))
  .map((folder) => ({ path: `${folder}/lua.generated.ts`, render: () => renderLua(join(root, folder, 'lua')) }))

export function renderLua(folder: string): string {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.lua') && !name.startsWith('_'))
    .map((name) => name.replace(/\.lua$/, ''))
    .sort()
  const entries = names.map((name) => entry(key(name), literal(assemble(folder, name))))
  return `// Generated from lua/ by \`npm run generate\`. Do not edit.
/* oxlint-disable */
export const LUA = {
${entries.join('')}} as const
`
}

function assemble(folder: string, name: string, seen = new Set<string>()): string {
  const text = readFileSync(join(folder, `${name}.lua`), 'utf8').replaceAll('\r\n', '\n')
  return text
    .split('\n')
    .flatMap((line) => {
      const included = /^--@include ([\w-]+)$/.exec(line)?.[1]
      if (included === undefined) return isNoise(line) ? [] : [line.trim()]
      if (seen.has(included)) return []
      seen.add(included)
      return [assemble(folder, included, seen)]
    })
    .join('\n')
}

/** Comments and empty lines are for the reader of the file; the server keeps every byte of a script. */
function isNoise(line: string): boolean {
  return /^\s*(--.*)?$/.test(line)
}

/** As the formatter would: it breaks a line that is too long, where that moves the text to the left by enough. */
function entry(name: string, text: string): string {
  const line = `  ${name}: ${text},\n`
  return line.length <= WIDTH + 1 || name.length <= SHORT_NAME ? line : `  ${name}:\n    ${text},\n`
}

function key(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}
