// Backups over a socket and over TLS, from a server that takes nothing else.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postgres } from '../../src/index.ts'
import { backupDatabase } from '../../src/tasks/backup.ts'
import { startTestPostgres } from '../support/postgres-server.ts'
import type { TestPostgres } from '../support/postgres-server.ts'
import { contextOf, folder } from './support.ts'

const BIN_15 = '/usr/lib/postgresql/15/bin'
let server: TestPostgres
let home: string
let sockets: string

beforeAll(async () => {
  sockets = mkdtempSync(join(tmpdir(), 'millrace-socket-'))
  chmodSync(sockets, 0o777)
  server = await startTestPostgres({ version: 15, settings: { unix_socket_directories: sockets } })
  await server.stop()
  home = server.dataDir
  const { uid, gid } = statSync(home)
  const [cert, key] = [join(home, 'server.crt'), join(home, 'server.key')]
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names, '-keyout', key, '-out', cert],
    {
      stdio: 'ignore',
    },
  )
  chmodSync(key, 0o600)
  for (const path of [cert, key]) chownSync(path, uid, gid)
  writeFileSync(join(home, 'pg_hba.conf'), 'local all all scram-sha-256\nhostssl all all all scram-sha-256\n')
  writeFileSync(join(home, 'postgresql.auto.conf'), `ssl = on\n`)
  await server.start()
})
afterAll(async () => {
  await server.stop()
  rmSync(sockets, { recursive: true, force: true })
})

test('P4 over a socket', async () => {
  const { username, password, port } = new URL(server.url)
  await dumps(`postgres://${username}:${password}@/postgres?host=${sockets}&port=${port}`)
})

test('P4 over TLS, with the certificate checked', async () => {
  const url = new URL(server.url)
  url.hostname = 'localhost'
  await expect(new pg.Client(url.href).connect()).rejects.toThrow(/no encryption/)
  url.search = `?sslmode=verify-full&sslrootcert=${join(home, 'server.crt')}`
  await dumps(url.href)
})

async function dumps(url: string): Promise<void> {
  const backend = postgres({ url, poolMax: 2 })
  await backend.start()
  await backend.stop()
  const dir = folder()
  const result = await backupDatabase(contextOf({ backend }), { dir, bin: BIN_15 })
  expect(result).toMatchObject({ outcome: 'done', warnings: [] })
  expect(readdirSync(dir)).toHaveLength(2)
}
