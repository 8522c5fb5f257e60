// docs/testing.md: each of its blocks stands word for word in a file of samples/, and all of these run.
import { execFile } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const SAMPLES = join(import.meta.dirname, 'samples')
const PAGE = join(import.meta.dirname, '../../docs/testing.md')

/** Samples import the sources, readers import the package. */
function asInDocs(file: string): string {
  return readFileSync(join(SAMPLES, file), 'utf8')
    .replaceAll("'../../../src/index.ts'", "'millrace'")
    .replaceAll("'../../../src/testing/index.ts'", "'millrace/testing'")
}

test('O7 every block of docs/testing.md is part of a sample that runs', () => {
  const files = readdirSync(SAMPLES).map(asInDocs)
  const samples = [...files, ...files.map((text) => text.replaceAll("from 'vitest'", "from '@jest/globals'"))]
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, code = '']) => code)
  expect(blocks.length).toBeGreaterThan(8)
  expect(blocks.filter((block) => !samples.some((sample) => sample.includes(block)))).toEqual([])
})

test('O7 the sample for node:test passes', async () => {
  const args = ['--import', 'tsx', '--test', join(SAMPLES, 'node-test.ts')]
  // The runner of Node would otherwise take itself for a test inside another one.
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  expect(stdout).toMatch(/pass 1/)
})
