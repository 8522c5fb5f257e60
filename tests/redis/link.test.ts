// The link to a real Redis: scripts by their hash, nothing sent twice, and what a broken connection means.
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { RedisLink } from '../../src/backends/redis/link.ts'
import { script } from '../../src/backends/redis/script.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { newName, until, useRedis } from './support.ts'

const COUNT = script('count', `return redis.call('INCRBY', KEYS[1], ARGV[1])`)
const ECHO = script('echo', 'return ARGV[1]')

const redis = useRedis()
let server: RedisProcess

beforeAll(async () => {
  server = await redis.server()
})

async function connected(): Promise<RedisLink & { readonly name: string }> {
  const name = newName()
  const link = redis.link({ url: server.url }, { name })
  await link.connect()
  return Object.assign(link, { name })
}

describe('scripts', () => {
  test('a script that the server has forgotten is taught again, and runs once', async () => {
    const link = await connected()
    const key = newName()
    expect(await link.run(COUNT, [key], [1])).toBe(1)
    await server.command('SCRIPT', 'FLUSH')
    expect(await link.run(COUNT, [key], [1])).toBe(2)
    await server.command('SCRIPT', 'FLUSH')
    const sums = await Promise.all(Array.from({ length: 20 }, () => link.run(COUNT, [key], [1])))
    expect(sums.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 3))
  })

  test('text comes back as text, and bytes as bytes', async () => {
    const link = await connected()
    expect(await link.run(ECHO, [], ['grüße'])).toBe('grüße')
    const bytes = Buffer.from([0, 255, 128, 10])
    expect(await link.runBinary(ECHO, [], [bytes])).toEqual(bytes)
  })

  test('an error of a script names the script and carries no arguments', async () => {
    const link = await connected()
    const broken = script('broken part', 'return redis.call("NOSUCH", ARGV[1])')
    const error = await link.run(broken, [], ['a secret payload']).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STORE_REFUSED', retryable: false, message: /broken part/ })
    expect(String(error)).not.toContain('secret')
  })
})

describe('a broken connection', () => {
  test('a call whose connection is killed fails at once with a typed error, and is not sent again', async () => {
    const link = await connected()
    const key = newName()
    const call = link.command('BLPOP', key, 0).catch((error: unknown) => error)
    await until(() => isBlocked(link.name), 'the call to arrive')
    await killConnections(link.name)
    expect(await call).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, message: /unknown/ })
    await until(() => link.isConnected, 'the connection to come back')
    await link.command('RPUSH', key, 'kept')
    expect(await link.command('LLEN', key)).toBe(1)
  })

  test('a write that was on its way is not repeated after the reconnect', async () => {
    const link = await connected()
    const key = newName()
    await server.command('CLIENT', 'PAUSE', 400, 'WRITE')
    const call = link.run(COUNT, [key], [1]).catch((error: unknown) => error)
    await until(async () => (await clientOf(link.name)).includes('cmd=eval'), 'the call to arrive')
    await killConnections(link.name)
    expect(await call).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await until(() => link.isConnected, 'the connection to come back')
    await server.command('CLIENT', 'UNPAUSE')
    expect(await link.run(COUNT, [key], [0])).toBe(0)
  })

  test('while there is no server calls fail at once, and work again after its restart', async () => {
    const own = await redis.server()
    const link = redis.link({ url: own.url })
    await link.connect()
    await link.run(COUNT, ['n'], [1])
    await own.kill()
    await until(() => !link.isConnected, 'the link to notice')
    const startMs = performance.now()
    await expect(link.run(COUNT, ['n'], [1])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(performance.now() - startMs).toBeLessThan(500)
    await own.restart()
    await until(() => link.isConnected, 'the connection to come back')
    // The restart forgot the script; whether the last write was on disk is a matter of fsync.
    expect(Number(await link.run(COUNT, ['n'], [1]))).toBeLessThanOrEqual(2)
  })
})

describe('messages', () => {
  test('messages of the channel arrive, and others do not', async () => {
    const link = await connected()
    const [channel, heard] = [newName(), [] as string[]]
    await link.subscribe(channel, (message) => heard.push(message), noop)
    await server.command('PUBLISH', `${channel}-other`, 'no')
    await server.command('PUBLISH', channel, 'one')
    await until(() => heard.length > 0, 'the message')
    expect(heard).toEqual(['one'])
  })

  test('after a lost connection the listener is told, and hears everything said from then on', async () => {
    const link = await connected()
    const [channel, heard] = [newName(), [] as string[]]
    let backs = 0
    await link.subscribe(
      channel,
      (message) => heard.push(message),
      () => (backs += 1),
    )
    expect(backs).toBe(0)
    await killConnections(link.name)
    await until(() => backs === 1, 'the word that it is back')
    expect(await server.command('PUBLISH', channel, 'again')).toBe(1)
    await until(() => heard.length > 0, 'the message')
    expect(heard).toEqual(['again'])
  })

  test('a connection that breaks again while it subscribes anew fails nobody, and the listener is told in the end', async () => {
    const proxy = await startTcpProxy(server.port)
    onTestFinished(() => proxy.close())
    const unhandled: unknown[] = []
    const onUnhandled = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', onUnhandled)
    onTestFinished(() => void process.off('unhandledRejection', onUnhandled))
    const link = redis.link({ url: `redis://127.0.0.1:${proxy.port}` }, { name: newName() })
    await link.connect()
    const [channel, heard] = [newName(), [] as string[]]
    let backs = 0
    await link.subscribe(
      channel,
      (message) => heard.push(message),
      () => (backs += 1),
    )
    const lost = proxy.loseReplies(/\r\nsubscribe\r\n/i, 3)
    proxy.resetAll()
    await until(() => backs > 0, 'the word that it is back')
    expect(lost.count).toBe(3)
    expect(unhandled).toEqual([])
    expect(await server.command('PUBLISH', channel, 'again')).toBe(1)
    await until(() => heard.length > 0, 'the message')
    expect(heard).toEqual(['again'])
  })

  test('a server that refuses to tell for a while is asked again', async () => {
    const user = newName()
    const allow = (channels: string): Promise<unknown> =>
      server.command('ACL', 'SETUSER', user, 'on', '>secret', '~*', '+@all', 'resetchannels', channels)
    await allow('allchannels')
    const [channel, heard] = [newName(), [] as string[]]
    const name = newName()
    const link = redis.link({ url: `redis://${user}:secret@127.0.0.1:${server.port}` }, { name })
    await link.connect()
    let backs = 0
    await link.subscribe(
      channel,
      (message) => heard.push(message),
      () => (backs += 1),
    )
    // The server ends the connections of those who may no longer hear what they do.
    await allow('&none')
    await until(async () => String(await server.command('ACL', 'LOG')).includes(user), 'a refusal')
    expect(backs).toBe(0)
    await allow('allchannels')
    await until(() => backs === 1, 'the word that it is back')
    await server.command('PUBLISH', channel, 'again')
    await until(() => heard.length > 0, 'the message')
    expect(heard).toEqual(['again'])
  })

  test('whoever stops hears nothing more, and the server sends nothing more', async () => {
    const link = await connected()
    const channel = newName()
    const stop = await link.subscribe(channel, noop, noop)
    stop()
    await until(async () => (await server.command('PUBLISH', channel, 'x')) === 0, 'the end of the subscription')
  })
})

describe('life', () => {
  test('calls before the start and after the end say so', async () => {
    const link = redis.link({ url: server.url })
    await expect(link.command('PING')).rejects.toMatchObject({ code: 'STOPPED' })
    await link.connect()
    expect(await link.command('PING')).toBe('PONG')
    await link.close()
    await link.close()
    expect(link.isConnected).toBe(false)
    await expect(link.run(ECHO, [], ['x'])).rejects.toMatchObject({ code: 'STOPPED' })
    await link.connect()
    expect(await link.run(ECHO, [], ['x'])).toBe('x')
  })

  test('without Cluster there is one master to ask', async () => {
    const link = await connected()
    const names = await link.onMasters(async (node) => `${node.name} ${String(await node.command('PING'))}`)
    expect(names).toEqual([`127.0.0.1:${server.port} PONG`])
    expect(link.isCluster).toBe(false)
  })
})

async function clientOf(name: string): Promise<string> {
  const list = String(await server.command('CLIENT', 'LIST'))
  return list.split('\n').find((line) => line.includes(`name=${name}:calls `)) ?? ''
}

async function isBlocked(name: string): Promise<boolean> {
  return /flags=\w*b/.test(await clientOf(name))
}

async function killConnections(name: string): Promise<void> {
  const list = String(await server.command('CLIENT', 'LIST'))
  for (const line of list.split('\n').filter((one) => one.includes(name))) {
    await server.command('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(line)?.[1] ?? '')
  }
}

function noop(): void {}
