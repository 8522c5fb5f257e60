// A real process: what the heartbeat thread is for can only be seen with a loop that is really blocked.
// It runs the compiled library, because a worker thread of Node 20 loads no TypeScript.
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileProject } from '../../scripts/compile.ts'

const run = promisify(execFile)
let outDir: string

beforeAll(async () => {
  outDir = await compileProject('tsconfig.build.json', 'thread')
}, 60_000)

afterAll(() => rmSync(outDir, { recursive: true, force: true }))

test('D2 a worker whose loop is blocked for four ttls keeps its life through its heartbeat thread', async () => {
  const fixture = fileURLToPath(new URL('./fixtures/blocked-loop.mjs', import.meta.url))
  const library = pathToFileURL(join(outDir, 'index.js')).href
  const { stdout } = await run(process.execPath, [fixture, library], { timeout: 15_000 })
  const result = JSON.parse(stdout) as Record<string, unknown>
  expect(result).toMatchObject({ lost: [], ran: true, sameLife: true })
  expect(result['beatsWhileBlocked']).toBeGreaterThanOrEqual(10)
  expect(result['beatsAgain']).toBeGreaterThanOrEqual(10)
  expect(result['blockedMs']).toBeGreaterThanOrEqual(1_000)
})
