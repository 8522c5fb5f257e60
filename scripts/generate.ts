// `npm run generate`: writes the documents that are derived from code, and the module with the SQL files.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EMBEDDED_LUA } from './embed-lua.ts'
import { EMBEDDED_SQL } from './embed-sql.ts'
import { GENERATED_DOCS } from './render-docs.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

for (const { path, render } of [...GENERATED_DOCS, EMBEDDED_SQL, ...EMBEDDED_LUA]) {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, render())
  console.log(`wrote ${path}`)
}
