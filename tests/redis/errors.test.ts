// What can be wrong with a Redis, as a person meets it: each has a code, says what to do, and never shows a password.
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisError } from '../../src/backends/redis/redis-errors.ts'
import type { RedisServer } from '../../src/backends/redis/link.ts'
import { script } from '../../src/backends/redis/script.ts'
import { MillraceError } from '../../src/core/errors.ts'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { newName, until, useRedis } from './support.ts'

const SECRET = 'correct-horse-battery'
const WRITE = script('write', `return redis.call('SET', KEYS[1], ARGV[1])`)

/** 300 keys take a second, and it answers others meanwhile. */
const SLOW_LOAD = {
  'enable-debug-command': 'yes',
  'key-load-delay': '3000',
  'loading-process-events-interval-bytes': '1024',
}

const redis = useRedis()
let guarded: RedisProcess

beforeAll(async () => {
  guarded = await redis.server({ config: { requirepass: SECRET } })
  await guarded.command(
    'ACL',
    'SETUSER',
    'reader',
    'on',
    `>${SECRET}`,
    '~millrace:*',
    '+@read',
    '+@connection',
    '+info',
  )
})

describe('connecting', () => {
  test('nothing listens there', async () => {
    const port = await freePort()
    const error = await refusal({ url: `redis://user:${SECRET}@127.0.0.1:${port}` })
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, message: /nothing listens there/ })
  })

  test('the host is not known', async () => {
    const error = await refusal({ url: `redis://user:${SECRET}@no-such-host.invalid:6379` })
    expect(error.code).toBe('STORE_UNAVAILABLE')
    expect(error.message).toMatch(/host/)
  })

  test('somebody listens and says nothing', async () => {
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    redis.onEnd(async () => void silent.close())
    const { port } = silent.address() as AddressInfo
    const link = redis.link({ url: `redis://:${SECRET}@127.0.0.1:${port}` }, { connectTimeoutMs: 300 })
    const error = await link.connect().then(() => null, asMillrace)
    expect(error).toMatchObject({ code: 'STORE_TIMEOUT', retryable: true })
  })

  test('no password, a wrong one, and an unknown user', async () => {
    for (const url of [
      guarded.url,
      `redis://:${SECRET}-wrong@127.0.0.1:${guarded.port}`,
      `redis://nobody:${SECRET}@127.0.0.1:${guarded.port}`,
    ]) {
      const error = await refusal({ url })
      expect(error, url).toMatchObject({ code: 'STORE_REFUSED', retryable: false, message: /login/ })
    }
  })

  test('the right password opens the door, in the url or beside it', async () => {
    const { port } = guarded
    const servers = [{ url: `redis://:${SECRET}@127.0.0.1:${port}` }, { url: guarded.url, password: SECRET }]
    for (const server of servers) {
      const link = redis.link(server)
      await link.connect()
      expect(await link.command('PING')).toBe('PONG')
    }
  })

  test('a TLS connection to a server that speaks none', async () => {
    const plain = await redis.server()
    const error = await refusal({ url: plain.url.replace('redis:', 'rediss:') }, 300)
    expect(error).toMatchObject({ code: 'STORE_TIMEOUT', message: /TLS/ })
  })
})

describe('calling', () => {
  test('a user without the permission for a command or a key', async () => {
    const link = redis.link({ url: `redis://reader:${SECRET}@127.0.0.1:${guarded.port}` })
    await link.connect()
    const calls = [
      link.command('SET', 'millrace:x', '1'),
      link.command('GET', 'elsewhere'),
      link.run(WRITE, ['x'], ['1']),
    ]
    for (const call of calls) {
      const error = await call.then(() => null, asMillrace)
      expect(error).toMatchObject({ code: 'STORE_REFUSED', retryable: false, message: /permission/ })
    }
  })

  test('a replica takes no writes, also not from a script', async () => {
    const primary = await redis.server({ config: { 'repl-diskless-sync-delay': '0' } })
    const replica = await redis.server({ config: { replicaof: `127.0.0.1 ${primary.port}` } })
    const link = redis.link({ url: replica.url })
    await until(
      async () => String(await replica.command('INFO', 'replication')).includes('link_status:up'),
      'the replica',
    )
    await link.connect()
    for (const call of [() => link.command('SET', 'x', '1'), () => link.run(WRITE, ['x'], ['1'])]) {
      // Each refusal makes it look whether the address means another server now.
      await until(() => link.isConnected, 'the connection')
      const error = await call().then(() => null, asMillrace)
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, message: /replica/ })
    }
  })

  test('a server without memory refuses writes and keeps what it has', async () => {
    const small = await redis.server({ config: { maxmemory: '3mb', 'maxmemory-policy': 'noeviction' } })
    const link = redis.link({ url: small.url })
    await link.connect()
    let [error, written] = [null as MillraceError | null, 0]
    while (error === null && written < 200) {
      error = await link.run(WRITE, [`k${written}`], ['x'.repeat(50_000)]).then(() => null, asMillrace)
      if (error === null) written += 1
    }
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, message: /out of memory/ })
    expect(await link.command('DBSIZE')).toBe(written)
  })

  test('a server that loads its data', async () => {
    const slow = await redis.server({ config: SLOW_LOAD })
    const link = redis.link({ url: slow.url })
    await link.connect()
    await slow.command('DEBUG', 'POPULATE', 300)
    // Answers only when it has loaded; until then everybody else is told so, once in a while.
    const loading = slow.command('DEBUG', 'RELOAD').catch(() => undefined)
    let error: MillraceError | null = null
    await until(async () => {
      error ??= await link.run(WRITE, ['x'], ['1']).then(() => null, asMillrace)
      return error !== null
    }, 'a call that meets it')
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, message: /loading/ })
    await loading
  })
})

describe('words', () => {
  test.each([
    ['OOM command not allowed when used memory > maxmemory.', 'STORE_UNAVAILABLE'],
    ['LOADING Redis is loading the dataset in memory', 'STORE_UNAVAILABLE'],
    ['MASTERDOWN Link with MASTER is down', 'STORE_UNAVAILABLE'],
    ['BUSY Redis is busy running a script.', 'STORE_TIMEOUT'],
    ['MISCONF Redis is configured to save RDB snapshots', 'STORE_UNAVAILABLE'],
    ['CLUSTERDOWN Hash slot not served', 'STORE_UNAVAILABLE'],
    ['NOREPLICAS Not enough good replicas to write.', 'STORE_UNAVAILABLE'],
    ['ERR Error running script: @user_script:1: -OOM command not allowed', 'STORE_UNAVAILABLE'],
    ['MOVED 1234 10.0.0.1:6379', 'STORE_REFUSED'],
    ['ERR unknown command', 'STORE_REFUSED'],
    ['Connection is closed.', 'STORE_UNAVAILABLE'],
    ['Command timed out', 'STORE_TIMEOUT'],
  ])('%s is %s', (said, code) => {
    expect(redisError(new Error(said), 'jobs.insert')).toMatchObject({ code, message: /jobs\.insert/ })
  })

  test('no message of any error carries a password', () => {
    const said = `connect ECONNREFUSED redis://user:${SECRET}@host:6379 password=${SECRET}`
    const error = redisError(Object.assign(new Error(said), { code: 'ECONNREFUSED' }), 'connecting to Redis')
    expect(error.message).not.toContain(SECRET)
  })
})

async function refusal(server: RedisServer, connectTimeoutMs = 2_000): Promise<MillraceError> {
  const link = redis.link(server, { name: newName(), connectTimeoutMs })
  const error = await link.connect().then(
    () => new Error('it connected'),
    (thrown: unknown) => thrown,
  )
  await link.close()
  return asMillrace(error)
}

/** Every error of a test here passes through this look for the password. */
function asMillrace(error: unknown): MillraceError {
  expect(error).toBeInstanceOf(MillraceError)
  expect(String(error)).not.toContain(SECRET)
  // Also not in what the client hung on the cause.
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(SECRET)
  return error as MillraceError
}
