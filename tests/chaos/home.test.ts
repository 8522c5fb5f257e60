// What a run leaves: nothing, unless somebody should look at it; and no server, even if it is ended as soon as it has begun.
import { fork } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openHome } from '../../chaos/home.ts'
import { isRunning } from '../../src/backends/embedded/processes.ts'
import { until } from '../postgres/faults/until.ts'
import { RUN_DIRECTORY_VARIABLE } from '../support/run-directory.ts'
import { ROOT } from '../tidy/source.ts'

const usual = process.env[RUN_DIRECTORY_VARIABLE]
afterEach(() => {
  if (usual === undefined) delete process.env[RUN_DIRECTORY_VARIABLE]
  else process.env[RUN_DIRECTORY_VARIABLE] = usual
})

test('nothing is left of a run', async () => {
  const home = await openHome()
  expect(process.env[RUN_DIRECTORY_VARIABLE]).toBe(home.directory)
  writeFileSync(join(home.directory, 'books'), 'a line')
  expect(await home.close()).toBeUndefined()
  expect(existsSync(home.directory)).toBe(false)
})

test('what somebody should look at is kept, under a name that no later run clears away', async () => {
  const home = await openHome()
  writeFileSync(join(home.directory, 'books'), 'a line')
  home.keep()
  const kept = (await home.close())!
  expect(existsSync(home.directory)).toBe(false)
  expect(kept).not.toContain('millrace-run-')
  expect(readFileSync(join(kept, 'books'), 'utf8')).toBe('a line')
  rmSync(kept, { recursive: true })
})

test.each(['SIGTERM', 'SIGINT'] as const)('a run that is ended by %s leaves no server behind', async (signal) => {
  const child = fork(join(ROOT, 'tests/chaos/home-process.ts'), { execArgv: ['--import', 'tsx'], stdio: 'ignore' })
  let said: { readonly directory?: string; readonly pid?: number } = {}
  child.on('message', (message) => (said = message as typeof said)) // of home-process.ts
  await until(() => said.pid !== undefined, 'a server to run')
  const { directory, pid } = said
  child.kill(signal)
  await until(() => child.exitCode !== null || child.signalCode !== null, 'it to end')
  expect(child.exitCode).toBe(1)
  await until(() => !isRunning(pid!), 'its server to end')
  rmSync(directory!, { recursive: true })
})
