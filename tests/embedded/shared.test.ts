// Several processes and one server: who starts it, who may leave, and when it stops.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startEmbedded } from '../../src/backends/embedded/start-embedded.ts'
import { directory, query, serverPid, until, untilServerIsGone, useCompiled } from './support.ts'

const dir = directory()
const startUser = useCompiled()

test('five processes that start at the same moment share one server', async () => {
  const users = Array.from({ length: 5 }, () => startUser(dir))
  const urls = await Promise.all(users.map(({ url }) => url))
  expect(new Set(urls).size).toBe(1)
  for (const url of urls) expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(serverLog().match(/starting PostgreSQL 18/g)).toHaveLength(1)
  await Promise.all(users.map((user) => user.leave()))
  await untilServerIsGone(dir)
})

test('the server stays while one process uses it, and stops after the last', async () => {
  const first = startUser(dir)
  await first.url
  const second = startUser(dir)
  await second.url
  const pid = serverPid(dir)
  await first.leave()
  const third = await startEmbedded({ dir })
  await second.kill()
  expect(third.url).toBe(await first.url)
  expect(await query(third.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(serverPid(dir)).toBe(pid)
  await third.stop()
  await untilServerIsGone(dir)
})

test('kill -9 of the process that started it stops the server cleanly', async () => {
  const user = startUser(dir)
  await query(await user.url, 'create table survives as select 7 as seven')
  await user.kill()
  await untilServerIsGone(dir)
  expect(existsSync(join(dir, 'pg18', 'postmaster.pid'))).toBe(false)
  const next = await startEmbedded({ dir })
  expect(await query(next.url, 'select seven from survives')).toEqual([{ seven: 7 }])
  expect(serverLog()).not.toContain('not properly shut down')
  await next.stop()
  await untilServerIsGone(dir)
})

test.each(['lock', 'pg18/postmaster.pid', 'state.json'])(
  'kill -9 of a starting process when there is a %s: the next start works, and nothing stays behind',
  async (file) => {
    const killed = startUser(dir)
    await until(() => existsSync(join(dir, file)), file)
    await killed.kill()
    const next = startUser(dir)
    expect(await query(await next.url, 'select seven from survives')).toEqual([{ seven: 7 }])
    await next.leave()
    await untilServerIsGone(dir)
    expect(readdirSync(dir).sort()).toEqual(['.gitignore', 'password', 'pg18', 'port', 'server.log'])
  },
)

test('kill -9 of a process that makes the data: nobody finds half of it', async () => {
  const fresh = directory()
  const killed = startUser(fresh)
  await until(() => existsSync(fresh) && readdirSync(fresh).some((name) => name.startsWith('initdb-')), 'initdb')
  await killed.kill()
  expect(existsSync(join(fresh, 'pg18'))).toBe(false)
  const next = startUser(fresh)
  expect(await query(await next.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await next.leave()
  await untilServerIsGone(fresh)
})

test('processes that come while the server is stopping get a server', async () => {
  for (let round = 0; round < 5; round += 1) {
    // No time between the last user and the stop: the next find anything from a running to a vanished server.
    const first = startUser(dir, 0)
    await first.url
    const left = first.leave()
    const during = startUser(dir, 0)
    const after = await left.then(() => startUser(dir, 0))
    for (const other of [during, after]) {
      expect(await query(await other.url, 'select 1 as one')).toEqual([{ one: 1 }])
      await other.leave()
    }
  }
  await untilServerIsGone(dir)
})

function serverLog(): string {
  return readFileSync(join(dir, 'server.log'), 'utf8')
}
