// Backups of real servers: PostgreSQL 15 with its own pg_dump, and 18, for which that is too old.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob, memory, postgres } from '../../src/index.ts'
import type { Backend } from '../../src/index.ts'
import { backupDatabase } from '../../src/tasks/backup.ts'
import { pgTarget } from '../../src/tasks/pg-env.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { FreshDatabase, PostgresServer } from '../support/postgres-server.ts'
import { contextOf, folder } from './support.ts'

const BIN_15 = '/usr/lib/postgresql/15/bin'
const DAY = 24 * 60 * 60_000
const hello = defineJob({ name: 'hello', run: () => 'hello' })

let server: PostgresServer
let database: FreshDatabase
let backend: Backend
let jobId: string

beforeAll(async () => {
  server = await sharedPostgres(15)
  database = await freshDatabase(server)
  backend = postgres({ url: database.url, poolMax: 4 })
  const mill = await createMillrace({ jobs: [hello], backend })
  jobId = (await mill.enqueue(hello, undefined, { delay: '1h' })).id
  await mill.stop()
})
afterAll(() => database.drop())

const backups = (dir: string): string[] => readdirSync(dir).filter((name) => name.endsWith('.dump'))

test('P4 a backup of PostgreSQL 15 is whole: restored into an empty database, its jobs are there', async () => {
  const dir = join(folder(), 'made')
  const result = await backupDatabase(contextOf({ backend }), { dir, bin: BIN_15 })
  expect(result).toMatchObject({ outcome: 'done', counts: { tool: 15, server: 15, removed: 0 }, left: null })
  const [file = ''] = result.files
  expect(result.bytes).toBe(statSync(file).size)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(dir).sort()).toEqual([file.slice(dir.length + 1), `${file.slice(dir.length + 1)}.sha256`])
  const sum = createHash('sha256').update(readFileSync(file)).digest('hex')
  expect(readFileSync(`${file}.sha256`, 'utf8')).toBe(`${sum}  ${file.slice(dir.length + 1)}\n`)

  const fresh = await freshDatabase(server)
  onTestFinished(() => fresh.drop())
  const { env } = pgTarget(fresh.url, 15)
  await promisify(execFile)(join(BIN_15, 'pg_restore'), ['--exit-on-error', '--dbname', fresh.name, file], {
    env: { ...process.env, ...env },
  })
  const mill = await createMillrace({ jobs: [hello], backend: postgres({ url: fresh.url, poolMax: 4 }) })
  expect(await mill.jobs.get(jobId)).toMatchObject({ name: 'hello', status: 'scheduled' })
  const more = await mill.enqueue(hello)
  expect(await mill.jobs.get(more.id)).toMatchObject({ status: 'queued' })
  await mill.stop()
})

test('P4 old backups go after 7 days, and nothing else in the directory', async () => {
  const dir = folder()
  const label = 'shop'
  const stampOf = (days: number): string => new Date(Date.now() - days * DAY).toISOString().replaceAll(/[-:.]/g, '')
  const named = (days: number, of = label): string => `millrace-${of}-${stampOf(days)}.dump`
  const [old, young, others] = [named(8), named(2), named(30, 'other')]
  for (const name of [old, `${old}.sha256`, young, others, 'customers.dump', `${named(3)}.part`]) {
    writeFileSync(join(dir, name), 'x')
  }
  const look = await backupDatabase(contextOf({ backend }), { dir, bin: BIN_15, label, dryRun: true })
  expect(look).toMatchObject({ dryRun: true, counts: { removed: 1 }, files: [] })
  expect(existsSync(join(dir, old))).toBe(true)
  const eu = await backupDatabase(contextOf({ backend, connection: 'eu' }), { dir, bin: BIN_15, label, dryRun: true })
  expect(eu, 'another store of the same configuration').toMatchObject({ counts: { removed: 0 } })
  const result = await backupDatabase(contextOf({ backend }), { dir, bin: BIN_15, label })
  expect(result).toMatchObject({ counts: { removed: 1 } })
  const left = readdirSync(dir)
  expect(left).toEqual(expect.arrayContaining([young, others, 'customers.dump']))
  expect(left).not.toContain(old)
  expect(left).not.toContain(`${old}.sha256`)
  expect(left.filter((name) => name.endsWith('.part'))).toEqual([])
})

test('P4 a pg_dump that is older than the server is refused with both versions and what to install', async () => {
  const newer = await freshDatabase(await sharedPostgres(18))
  onTestFinished(() => newer.drop())
  const dir = join(folder(), 'none')
  const run = backupDatabase(contextOf({ backend: postgres({ url: newer.url }) }), { dir, bin: BIN_15 })
  await expect(run).rejects.toMatchObject({
    code: 'BACKUP_TOOL_OLD',
    details: { tool: 15, server: 18 },
    message: expect.stringMatching(/PostgreSQL 15 .* PostgreSQL 18.*postgresql-client-18/) as string,
  })
  expect(existsSync(dir)).toBe(false)
})

test('P4 without pg_dump it says which to install, and that the embedded package has none', async () => {
  const newer = await freshDatabase(await sharedPostgres(18))
  onTestFinished(() => newer.drop())
  const run = backupDatabase(contextOf({ backend: postgres({ url: newer.url }), env: { PATH: '' } }), { dir: folder() })
  await expect(run).rejects.toMatchObject({
    code: 'BACKUP_TOOL_MISSING',
    message: expect.stringMatching(/postgresql-client-18.*embedded/) as string,
  })
})

/** Programs that do as they are told; `dump` is shell. */
function fakeTools(dump: string, restore = 'exit 0'): string {
  const bin = join(folder(), 'bin')
  mkdirSync(bin)
  const version = 'if [ "$1" = --version ]; then echo "pg_dump (PostgreSQL) 15.1"; exit 0; fi'
  for (const [name, does] of [
    ['pg_dump', dump],
    ['pg_restore', restore],
  ] as const) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${version}\n${does}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

test('P4 the password is in no argument and in no message, and a dump that fails leaves nothing', async () => {
  const { password } = new URL(database.url)
  const seen = join(folder(), 'args')
  const bin = fakeTools(`echo "$@" > ${seen}; echo "no route to $PGPASSWORD" >&2; exit 3`)
  const dir = folder()
  const error = await backupDatabase(contextOf({ backend }), { dir, bin }).catch((thrown: unknown) => thrown as Error)
  expect(error).toMatchObject({ code: 'BACKUP_FAILED', message: expect.stringContaining('no route to ***') as string })
  expect(readFileSync(seen, 'utf8')).toContain('--schema="millrace"')
  expect(readFileSync(seen, 'utf8')).not.toContain(password)
  expect(JSON.stringify(error)).not.toContain(password)
  expect(readdirSync(dir)).toEqual([])
})

test('P4 a dump that cannot be read back is no backup, and the older ones stay', async () => {
  const dir = folder()
  await backupDatabase(contextOf({ backend }), { dir, bin: BIN_15 })
  // Cut in half after it was written: its list of contents would still be whole.
  const half = `f=$(echo "$*" | sed 's/.*--file=//'); ${BIN_15}/pg_dump "$@" || exit 1; truncate -s 20000 "$f"`
  const restore = `exec ${BIN_15}/pg_restore "$@"`
  const error = backupDatabase(contextOf({ backend }), { dir, bin: fakeTools(half, restore), keep: 0 })
  await expect(error).rejects.toMatchObject({ code: 'BACKUP_FAILED', details: { program: 'pg_restore' } })
  expect(backups(dir)).toHaveLength(1)
  expect(readdirSync(dir)).toHaveLength(2)
})

test('P4 a backup that is stopped ends pg_dump and removes its part', async () => {
  const dir = folder()
  const pid = join(folder(), 'pid')
  const bin = fakeTools(`echo $$ > ${pid}.new; mv ${pid}.new ${pid}; exec sleep 60`)
  const stop = new AbortController()
  const run = backupDatabase(contextOf({ backend, signal: stop.signal }), { dir, bin })
  await expect.poll(() => existsSync(pid), { timeout: 10_000 }).toBe(true)
  expect(readdirSync(dir)).toEqual([expect.stringMatching(/\.dump\.part$/)])
  stop.abort(new Error('the process ends'))
  await expect(run).rejects.toThrow('the process ends')
  expect(() => process.kill(Number(readFileSync(pid, 'utf8')), 0)).toThrow(/ESRCH/)
  expect(readdirSync(dir)).toEqual([])
})

test('P4 a backup has a time, and room', async () => {
  const dir = folder()
  const slow = backupDatabase(contextOf({ backend }), { dir, bin: fakeTools('exec sleep 60'), maxTime: 300 })
  await expect(slow).rejects.toMatchObject({
    code: 'BACKUP_FAILED',
    message: expect.stringContaining('300 ms') as string,
  })
  expect(readdirSync(dir)).toEqual([])
  // A last backup of 4 PB, which is a hole on the disk.
  const name = `millrace-huge-20260101T000000000Z.dump`
  writeFileSync(join(dir, name), '')
  await promisify(execFile)('truncate', ['-s', '8T', join(dir, name)])
  const full = backupDatabase(contextOf({ backend }), { dir, bin: BIN_15, label: 'huge' })
  await expect(full).rejects.toMatchObject({ code: 'BACKUP_NO_SPACE' })
  expect(readdirSync(dir)).toEqual([name])
})

test.each([
  {},
  { dir: 'backups' },
  { dir: '/tmp/x', level: 10 },
  { dir: '/tmp/x', label: '../x' },
  { dir: '/tmp/x', bin: 'bin' },
])('P4 %o is refused', async (options) => {
  await expect(backupDatabase(contextOf({ backend }), options)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
})

test('P4 a store without a database has nothing to back up', async () => {
  const run = backupDatabase(contextOf({ backend: memory() }), { dir: folder() })
  await expect(run).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
})
