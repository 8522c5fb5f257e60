// `npm run generate`: writes the documents that are derived from code.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GENERATED_DOCS } from './render-docs.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

for (const { path, render } of GENERATED_DOCS) {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, render())
  console.log(`wrote ${path}`)
}
