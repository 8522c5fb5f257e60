// One process and its server: the first start, later ones, and what the server is like.
import { existsSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { startEmbedded } from '../../src/backends/embedded/start-embedded.ts'
import { directory, directoryWithData, query, serverPid, until, untilServerIsGone } from './support.ts'

const dir = directory()

test('the first start makes a durable server that only this machine and this user can reach', async () => {
  const server = await startEmbedded({ dir })
  const settings = `select name, setting from pg_settings where name in
    ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'server_encoding', 'data_checksums',
     'unix_socket_directories', 'password_encryption')`
  const rows = await query(server.url, settings)
  expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
    data_checksums: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    listen_addresses: '127.0.0.1',
    password_encryption: 'scram-sha-256',
    server_encoding: 'UTF8',
    synchronous_commit: 'on',
    unix_socket_directories: '',
  })
  const [database] = await query(server.url, 'select current_database() as name, datcollate from pg_database limit 1')
  expect(database).toEqual({ name: 'millrace', datcollate: 'C' })
  await expect(query(server.url.replace(/:[0-9a-f]+@/, ':wrong@'), 'select 1')).rejects.toThrow(/password/)
  expect(statSync(join(dir, 'password')).mode & 0o777).toBe(0o600)
  expect(statSync(join(dir, 'pg18')).mode & 0o777).toBe(0o700)
  expect(readFileSync(join(dir, '.gitignore'), 'utf8')).toBe('*\n')
  expect(server.dir).toBe(dir)
  await server.stop()
  await untilServerIsGone(dir)
})

test('a later start is quick, keeps the data and the address', async () => {
  const first = await startEmbedded({ dir })
  await query(first.url, 'create table kept as select 42 as answer')
  await first.stop()
  await untilServerIsGone(dir)
  const startMs = performance.now()
  const second = await startEmbedded({ dir })
  const tookMs = performance.now() - startMs
  expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect(second.url).toBe(first.url)
  await second.stop()
  expect(tookMs).toBeLessThan(1_000)
})

test('the server does not run as root, and so nothing of it does', async () => {
  const server = await startEmbedded({ dir })
  const pid = serverPid(dir) ?? 0
  const owner = statSync(join(dir, 'pg18')).uid
  expect(owner).not.toBe(0)
  if (process.platform === 'linux') expect(statSync(`/proc/${pid}`).uid).toBe(owner)
  await server.stop()
})

test('stop may be called twice, and after the server has gone', async () => {
  const server = await startEmbedded({ dir, lingerMs: 0 })
  await server.stop()
  await untilServerIsGone(dir)
  await server.stop()
  await expect(query(server.url, 'select 1')).rejects.toThrow(/ECONNREFUSED/)
})

test('a program that stops and starts again within a second finds its server running', async () => {
  const first = await startEmbedded({ dir })
  const pid = serverPid(dir)
  await first.stop()
  const second = await startEmbedded({ dir })
  expect(serverPid(dir)).toBe(pid)
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
})

test('a directory whose path is too long for a socket works all the same', async () => {
  const deep = join(await directoryWithData(), '..', 'a'.repeat(60), 'b'.repeat(60))
  mkdirSync(dirname(deep))
  renameSync(join(deep, '..', '..', '.millrace'), deep)
  const server = await startEmbedded({ dir: deep, lingerMs: 0 })
  await query(server.url, 'select 1')
  await server.stop()
  const { address } = JSON.parse(readFileSync(join(deep, 'state.json'), 'utf8')) as { address: string }
  await until(() => serverPid(deep) === undefined && !existsSync(address), 'server and socket to be gone')
})
