// What other programs, crashes and reboots do to a directory, its guardian and its server.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isRunning, markOf } from '../../src/backends/embedded/processes.ts'
import { startEmbedded } from '../../src/backends/embedded/start-embedded.ts'
import { jsonLogger } from '../../src/runtime/logger.ts'
import { directory, directoryWithData, query, serverPid, until, untilGuardian, untilServerIsGone } from './support.ts'

const dir = await directoryWithData()

test('a guardian that was killed is replaced, and the server goes on', async () => {
  const server = await startEmbedded({ dir, lingerMs: 100 })
  const guardian = await untilGuardian(dir)
  const pid = serverPid(dir)
  process.kill(guardian, 'SIGKILL')
  await untilGuardian(dir, guardian)
  expect(serverPid(dir)).toBe(pid)
  await query(server.url, 'select 1')
  await server.stop()
  await untilServerIsGone(dir)
})

test('a guardian that was frozen and replaced does not stop the server of its successor', async () => {
  const lines: string[] = []
  const first = await startEmbedded({ dir, lingerMs: 100, logger: jsonLogger('warn', (line) => lines.push(line)) })
  const guardian = await untilGuardian(dir)
  const pid = serverPid(dir)
  process.kill(guardian, 'SIGSTOP')
  const second = await startEmbedded({ dir, lingerMs: 100 })
  await untilGuardian(dir, guardian)
  process.kill(guardian, 'SIGCONT')
  await until(() => !isRunning(guardian), 'the old guardian to go')
  await until(() => lines.some((line) => line.includes('brought back')), 'the first to hold on to the new one')
  await second.stop()
  expect(await query(first.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(serverPid(dir)).toBe(pid)
  await first.stop()
  await untilServerIsGone(dir)
})

test('a server that was killed is started again under the same address', async () => {
  const lines: string[] = []
  const server = await startEmbedded({ dir, lingerMs: 100, logger: jsonLogger('warn', (line) => lines.push(line)) })
  await query(server.url, 'create table kept as select 1 as one')
  const pid = serverPid(dir) ?? 0
  process.kill(pid, 'SIGKILL')
  await until(() => lines.some((line) => line.includes('brought back')), 'the server to be brought back')
  expect(serverPid(dir)).not.toBe(pid)
  expect(await query(server.url, 'select one from kept')).toEqual([{ one: 1 }])
  await server.stop()
  await untilServerIsGone(dir)
})

test('what a crash or a reboot left behind does not keep the server from starting', async () => {
  const owner = statSync(join(dir, 'pg18'))
  // Its pid now belongs to another program of the same user, on which PostgreSQL alone would not start.
  const other = spawn('sleep', ['60'], { uid: owner.uid, gid: owner.gid, stdio: 'ignore' })
  const mark = { pid: other.pid, started: 'before the reboot', where: markOf(process.pid).where }
  const state = { token: 'old', guardian: mark, address: join(dir, 'guardian-old.sock'), port: 1, postmaster: 1 }
  writeFileSync(join(dir, 'lock'), JSON.stringify({ ...mark, token: 'old' }))
  writeFileSync(join(dir, 'state.json'), JSON.stringify(state))
  writeFileSync(join(dir, 'guardian-old.sock'), '')
  const lines = [other.pid, join(dir, 'pg18'), 1_700_000_000, 5_432, '', '127.0.0.1', '  1234567         7', 'ready   ']
  writeFileSync(join(dir, 'pg18', 'postmaster.pid'), `${lines.join('\n')}\n`)
  const server = await startEmbedded({ dir, lingerMs: 0 })
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(other.exitCode).toBeNull()
  await server.stop()
  await untilServerIsGone(dir)
  other.kill()
})

test.each(['', '{', '{"pid":1', 'null'])('a file that a crash cut to %j is as good as none', async (text) => {
  for (const name of ['lock', 'state.json', 'port']) {
    writeFileSync(join(dir, name), text)
    utimesSync(join(dir, name), 1, 1)
  }
  const server = await startEmbedded({ dir, lingerMs: 0 })
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await server.stop()
  await untilServerIsGone(dir)
})

test('a server whose directory was removed ends with its user', async () => {
  const removed = await directoryWithData()
  const server = await startEmbedded({ dir: removed, lingerMs: 0 })
  const guardian = await untilGuardian(removed)
  const pid = serverPid(removed) ?? 0
  const written = statSync(join(removed, 'state.json')).mtimeMs
  await until(() => statSync(join(removed, 'state.json')).mtimeMs !== written, 'the guardian to have read it')
  rmSync(removed, { recursive: true, force: true, maxRetries: 5 })
  await server.stop()
  await until(() => !isRunning(pid) && !isRunning(guardian), 'server and guardian to be gone')
})

test('a port that another program took is changed', async () => {
  const taker = createServer()
  const port = Number(readFileSync(join(dir, 'port'), 'utf8'))
  await new Promise<void>((resolve) => void taker.listen(port, '127.0.0.1', resolve))
  const server = await startEmbedded({ dir, lingerMs: 0 })
  expect(new URL(server.url).port).not.toBe(String(port))
  await query(server.url, 'select 1')
  await server.stop()
  await untilServerIsGone(dir)
  taker.close()
})

test('a directory that another container uses is refused', async () => {
  const elsewhere = { pid: 1, started: '1', where: 'another container' }
  const state = join(dir, 'state.json')
  writeFileSync(
    state,
    JSON.stringify({ token: 't', guardian: elsewhere, address: join(dir, 'far.sock'), port: 1, postmaster: 1 }),
  )
  let beats = 1_000
  const beating = setInterval(() => utimesSync(state, (beats += 1), beats), 20)
  const refused = startEmbedded({ dir })
  await expect(refused).rejects.toThrow(/another container or on another host/)
  await expect(refused).rejects.toMatchObject({ code: 'EMBEDDED_FAILED' })
  clearInterval(beating)
  expect(existsSync(join(dir, 'lock'))).toBe(false)
})

test('a lock that nobody gives back ends in an error that names its holder', async () => {
  writeFileSync(join(dir, 'lock'), JSON.stringify({ ...markOf(process.pid), token: 'held' }))
  const refused = startEmbedded({ dir, timeoutMs: 100 })
  await expect(refused).rejects.toThrow(new RegExp(`process ${process.pid} has been starting or stopping it`))
  writeFileSync(join(dir, 'lock'), '')
})

test('a project in a directory that is closed to all others gets its server too', async () => {
  const home = directory()
  mkdirSync(home, { mode: 0o700 })
  const server = await startEmbedded({ dir: join(home, 'project', '.millrace'), lingerMs: 0 })
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(statSync(home).mode & 0o777).toBe(0o700)
  await server.stop()
  await untilServerIsGone(server.dir)
})
