// What only a real server can do to the race: lose keys, fail over, restart, fill up, forbid, be spread over a Cluster.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Gated, Race } from '../../src/backends/hybrid/ports.ts'
import { raceProblems } from '../../src/backends/hybrid/race-invariants.ts'
import { sharedRedis, startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { QUEUE, WINDOW, connectRace, fieldOf, holdings, openRace, passed, push } from './race-setup.ts'
import { session, take, token, tokens } from './race-setup.ts'
import type { RedisRace } from './race-setup.ts'

const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end()
})

afterAll(async () => (await plain)?.stop())

async function connect(server: Parameters<typeof connectRace>[0], prefix?: string): Promise<RedisRace> {
  const one = await connectRace(server, prefix === undefined ? {} : { prefix })
  ended.push(() => one.race.stop())
  return one
}

async function start(options: Parameters<typeof startRedis>[0] = {}): Promise<RedisProcess> {
  const server = await startRedis(options)
  ended.push(() => server.stop())
  return server
}

/** One server for tests that leave it as it was, but for its data. */
let plain: Promise<RedisProcess> | undefined

async function plainServer(): Promise<RedisProcess> {
  const server = await (plain ??= startRedis({ appendOnly: false }))
  await server.command('FLUSHALL')
  return server
}

/** Every gated call, each harmless in itself. */
const CALLS: Readonly<Record<string, (race: Race, tag: string) => Promise<Gated<unknown>>>> = {
  push: (race, tag) => race.push(QUEUE, tag, { pusher: 'p9', tokens: [], backlog: null, window: WINDOW }),
  'push of a token': (race, tag) =>
    race.push(QUEUE, tag, { pusher: 'p9', tokens: [token(900)], backlog: null, window: WINDOW }),
  'push to a full lane': (race, tag) =>
    race.push(QUEUE, tag, { pusher: 'p9', tokens: [token(900)], backlog: null, window: 0 }),
  take: (race, tag) => race.take(QUEUE, tag, { session: session('z'), c: 50, most: 1, done: [] }),
  'take of nothing': (race, tag) => race.take(QUEUE, tag, { session: session('z'), c: 51, most: 0, done: [] }),
  'a doubled take': (race, tag) => race.take(QUEUE, tag, { session: session('a'), c: 1, most: 1, done: [] }),
  holdings: (race, tag) => race.holdings(QUEUE, tag, { session: session('z'), c: 52, cursor: '0' }),
  drop: (race, tag) => race.drop(QUEUE, tag, session('z'), [fieldOf(1)], true),
  revoke: (race, tag) => race.revoke(QUEUE, tag, [fieldOf(1)]),
  audit: (race, tag) => race.audit(QUEUE, tag, 0, [fieldOf(1)]),
  probe: async (race, tag) => {
    const { refused, redisId } = await race.probe(QUEUE, tag)
    return refused === null ? { refused, value: redisId } : { refused, value: null }
  },
  config: (race, tag) => race.config(QUEUE, tag, { version: 2, paused: false, lowerLaneShare: 16 }),
}
const named = Object.entries(CALLS)

describe('a lost part', () => {
  let redis: RedisRace
  let epoch = 0

  beforeAll(async () => {
    redis = await connectRace({ url: (await sharedRedis()).url })
  })
  afterAll(() => redis.race.stop())

  async function filled(): Promise<string> {
    const tag = await openRace(redis.race, ++epoch)
    await push(redis.race, tag, [...tokens(1, 3, 0), ...tokens(11, 3, 1), ...tokens(21, 3, 2)])
    await take(redis.race, tag, 'a', 1, 1)
    return tag
  }

  test.each([
    ['high', 1],
    ['normal', 2],
    ['low', 3],
    ['held', 4],
  ])('%s: every call finds it, and goes on finding it', async (_name, at) => {
    const redisId = await redis.race.identity(QUEUE)
    for (const [name, call] of named) {
      const tag = await filled()
      await redis.link.command('UNLINK', redis.keys()[at]!)
      const refused = { why: 'TORN', redisId, epoch: tag }
      expect((await call(redis.race, tag)).refused, name).toEqual(refused)
      for (const [other, again] of named) {
        expect((await again(redis.race, tag)).refused, `${other} after ${name}`).toEqual(refused)
      }
    }
  })

  test('a lost lane is not made whole by a push of as many tokens', async () => {
    const tag = await filled()
    await redis.link.command('UNLINK', redis.keys()[2]!)
    const request = { pusher: 'p9', tokens: tokens(500, 3), backlog: null, window: WINDOW }
    expect((await redis.race.push(QUEUE, tag, request)).refused?.why).toBe('TORN')
    expect((await CALLS['audit']!(redis.race, tag)).refused?.why).toBe('TORN')
  })

  test('a lost field in `held`: the take that meets its token says so', async () => {
    const tag = await filled()
    await redis.link.command('HDEL', redis.keys()[4]!, fieldOf(12))
    expect((await redis.race.take(QUEUE, tag, { session: session('b'), c: 1, most: 9, done: [] })).refused?.why).toBe(
      'TORN',
    )
    expect((await CALLS['audit']!(redis.race, tag)).refused?.why).toBe('TORN')
  })

  test('the state, or all: EPOCH, with nothing found', async () => {
    const redisId = await redis.race.identity(QUEUE)
    for (const [name, call] of named) {
      const tag = await filled()
      await redis.link.command('UNLINK', redis.keys()[0]!)
      expect((await call(redis.race, tag)).refused, name).toEqual({ why: 'EPOCH', redisId, epoch: '' })
    }
  })

  test('a key that somebody has overwritten is cleared by the next epoch', async () => {
    for (const at of [0, 1, 2, 3, 4]) {
      const tag = await filled()
      await redis.link.command('SET', redis.keys()[at]!, 'oops')
      await expect(redis.race.audit(QUEUE, tag, 0, [])).rejects.toMatchObject({ code: 'STORE_REFUSED' })
      const next = await openRace(redis.race, ++epoch)
      await push(redis.race, next, tokens(1, 1))
      expect(await take(redis.race, next, 'a', 1, 5)).toEqual([1])
    }
  })

  test.each([
    ['normal', 'probe'],
    ['share', 'take'],
    ['revoked', 'take'],
    ['s:z', 'take'],
    ['s:z', 'holdings'],
    ['floor', 'push'],
    ['p:p9', 'push'],
    ['floor', 'audit'],
    ['floor', 'revoke'],
    ['config', 'config'],
  ])(
    'something else in %s of the state: %s finds it, then every call does, and the next epoch is whole',
    async (field, call) => {
      const tag = await filled()
      await redis.link.command('HSET', redis.keys()[0]!, field, 'oops')
      expect((await CALLS[call]!(redis.race, tag)).refused?.why).toBe('TORN')
      for (const [other, again] of named) expect((await again(redis.race, tag)).refused?.why, other).toBe('TORN')
      const next = await openRace(redis.race, ++epoch)
      await push(redis.race, next, tokens(1, 1))
      expect(await take(redis.race, next, 'a', 1, 5)).toEqual([1])
    },
  )

  test('a text that is no token, and a note that names no holder, are found by whoever meets them', async () => {
    for (const text of ['oops', 'oops oops', '']) {
      const tag = await filled()
      await redis.link.command('LPUSH', redis.keys()[1]!, text)
      expect((await CALLS['take']!(redis.race, tag)).refused?.why, text).toBe('TORN')
    }
    const tag = await filled()
    await redis.link.command('HSET', redis.keys()[4]!, fieldOf(2), 'oops')
    expect((await redis.race.audit(QUEUE, tag, 0, [fieldOf(2)])).refused?.why).toBe('TORN')
  })

  test('a pusher or a session that somebody made up keeps nobody from the audit, nor a number from the next epoch', async () => {
    const tag = await filled()
    await redis.link.command('HSET', redis.keys()[0]!, 'p:oops', 'oops', 's:oops', 'oops')
    const { sessions } = passed(await redis.race.audit(QUEUE, tag, 0, []))
    expect(sessions).toContain('oops')
    for (const number of ['oops', '7.5', '9'.repeat(30)]) {
      await redis.link.command('HSET', redis.keys()[0]!, 'number', number)
      await push(redis.race, await openRace(redis.race, ++epoch), tokens(1, 1))
    }
  })

  test('once revoked tokens have passed, takes no longer look for them', async () => {
    const tag = await filled()
    passed(await redis.race.revoke(QUEUE, tag, [2, 12].map(fieldOf)))
    const revoked = () => redis.link.command('HGET', redis.keys()[0]!, 'revoked')
    expect(await revoked()).toBe('2')
    expect(await take(redis.race, tag, 'a', 2, 9)).toHaveLength(6)
    expect(await revoked()).toBe('0')
  })

  test('scripts that the server has forgotten are sent again', async () => {
    const tag = await filled()
    await redis.link.command('SCRIPT', 'FLUSH')
    expect(await take(redis.race, tag, 'a', 2, 2)).toEqual([2, 3])
  })
})

describe('a flushed server', () => {
  test('calls of the old epoch are refused, a late `open` of its number has another birth', async () => {
    const server = await plainServer()
    const { race } = await connect({ url: server.url })
    const tag = await openRace(race, 3)
    await push(race, tag, tokens(1, 2))
    await server.command('FLUSHALL')
    expect((await CALLS['take']!(race, tag)).refused).toMatchObject({ why: 'EPOCH', epoch: '' })
    const late = await openRace(race, 3)
    expect(late).not.toBe(tag)
    expect((await CALLS['take']!(race, tag)).refused).toMatchObject({ why: 'EPOCH', epoch: late })
    const next = await openRace(race, 4)
    await push(race, next, tokens(10, 1))
    expect(await take(race, next, 'a', 1, 5)).toEqual([10])
  })
})

describe('another server', () => {
  test('a promoted replica has the data, and refuses', async () => {
    const [first, second] = await pair()
    const prefix = 'failover'
    const { race } = await connect({ url: first.url }, prefix)
    const tag = await openRace(race, 1)
    await push(race, tag, tokens(1, 3))
    await caughtUp(first)
    await second.command('REPLICAOF', 'NO', 'ONE')
    const { race: promoted } = await connect({ url: second.url }, prefix)
    const redisId = await promoted.identity(QUEUE)
    expect(redisId).not.toBe(await race.identity(QUEUE))
    for (const [name, call] of named) {
      expect((await call(promoted, tag)).refused, name).toEqual({ why: 'IDENTITY', redisId, epoch: tag })
    }
    expect(await take(race, tag, 'a', 1, 9)).toEqual([1, 2, 3])
  })

  test('A to B and back to A on an open connection: A is no longer who it was', async () => {
    const [first, second] = await pair()
    const { race } = await connect({ url: first.url })
    const tag = await openRace(race, 1)
    const before = await race.identity(QUEUE)
    await push(race, tag, tokens(1, 3))
    await caughtUp(first)
    await second.command('REPLICAOF', 'NO', 'ONE')
    await follow(first, second)
    const asReplica = (await CALLS['take']!(race, tag)).refused
    expect(asReplica).toEqual({ why: 'IDENTITY', redisId: await identityOf(second), epoch: tag })
    await first.command('REPLICAOF', 'NO', 'ONE')
    const refused = (await CALLS['take']!(race, tag)).refused
    expect(refused).toEqual({ why: 'IDENTITY', redisId: await identityOf(first), epoch: tag })
    expect([before, asReplica?.redisId]).not.toContain(refused?.redisId)
  })

  test('a restart with all its data is another server', async () => {
    const server = await start()
    const { race, prefix } = await connect({ url: server.url })
    const tag = await openRace(race, 1)
    await push(race, tag, tokens(1, 3))
    await server.kill('SIGTERM')
    await expect(CALLS['take']!(race, tag)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await server.restart()
    const again = await connect({ url: server.url }, prefix)
    expect((await CALLS['take']!(again.race, tag)).refused).toMatchObject({ why: 'IDENTITY', epoch: tag })
    expect((await again.read()).lanes[1]).toHaveLength(3)
  })

  async function pair(): Promise<readonly [RedisProcess, RedisProcess]> {
    // Without it a primary waits 5 s for more replicas before it sends its data.
    const options = { appendOnly: false, config: { 'repl-diskless-sync-delay': '0' } }
    const servers = [await start(options), await start(options)] as const
    await follow(servers[1], servers[0])
    return servers
  }

  async function follow(replica: RedisProcess, primary: RedisProcess): Promise<void> {
    await replica.command('REPLICAOF', '127.0.0.1', primary.port)
    await expect
      .poll(async () => String(await replica.command('INFO', 'replication')), { timeout: 15_000, interval: 20 })
      .toContain('master_link_status:up')
  }

  async function identityOf(server: RedisProcess): Promise<string | undefined> {
    return /master_replid:(\w+)/.exec(String(await server.command('INFO', 'replication')))?.[1]
  }

  async function caughtUp(primary: RedisProcess): Promise<void> {
    expect(await primary.command('WAIT', 1, 10_000)).toBe(1)
  }
})

describe('a server that refuses to write', () => {
  test('a probe fails although Redis answers, and leaves nothing behind when it does not', async () => {
    const server = await plainServer()
    const { race } = await connect({ url: server.url })
    const redisId = await race.identity(QUEUE)
    ended.push(async () => void (await server.command('CONFIG', 'SET', 'min-replicas-to-write', 0)))
    expect(await race.probe(QUEUE, null)).toEqual({ redisId, refused: null })
    expect(await server.command('DBSIZE')).toBe(0)
    expect((await race.probe(QUEUE, '1.1')).refused).toEqual({ why: 'EPOCH', redisId, epoch: '' })
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', 1)
    await expect(race.probe(QUEUE, null)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await race.identity(QUEUE)).toBe(redisId)
  })
})

describe('a full memory', () => {
  test('push says full, a probe is refused, everything else works', async () => {
    const server = await plainServer()
    const redis = await connect({ url: server.url })
    const { race } = redis
    ended.push(async () => void (await server.command('CONFIG', 'SET', 'maxmemory', 0)))
    const tag = await openRace(race, 1)
    await push(race, tag, tokens(1, 20))
    const { used } = await race.memory()
    await server.command('CONFIG', 'SET', 'maxmemory', used)
    await server.command('SET', 'more', 'x'.repeat(64)).catch(() => undefined)
    const before = await race.memory()
    expect(before.max).toBe(used)
    expect(before.used).toBeGreaterThan(used)

    const bits = [true, true, true] as const
    const request = { pusher: 'p1', tokens: tokens(100, 2, 0), backlog: bits, window: WINDOW }
    const full = { isFull: true, depths: [0, 20, 0], backlog: [false, false, false] }
    expect(passed(await race.push(QUEUE, tag, request))).toEqual(full)
    expect(passed(await race.push(QUEUE, tag, { ...request, tokens: [] }))).toMatchObject({
      isFull: false,
      backlog: bits,
    })
    await expect(race.probe(QUEUE, tag)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await take(race, tag, 'a', 1, 2)).toEqual([1, 2])
    expect(await take(race, tag, 'a', 2, 1, [1])).toEqual([3])
    expect(await take(race, tag, 'a', 2, 1)).toBe('dup')
    expect(await holdings(race, tag, 'b', 7)).toEqual([])
    expect(passed(await race.revoke(QUEUE, tag, [fieldOf(4), fieldOf(2), fieldOf(77)]))).toEqual([
      'revoked',
      { session: 'a' },
      'absent',
    ])
    expect(passed(await race.audit(QUEUE, tag, 90, [fieldOf(1)])).absent).toEqual([fieldOf(1)])
    passed(await race.config(QUEUE, tag, { version: 2, paused: true, lowerLaneShare: 16 }))
    expect(await take(race, tag, 'c', 1, 1)).toBe('paused')
    passed(await race.config(QUEUE, tag, { version: 3, paused: false, lowerLaneShare: 16 }))
    passed(await race.drop(QUEUE, tag, session('a'), [fieldOf(2)], false))
    expect(await take(race, tag, 'c', 2, 30)).toHaveLength(16)
    expect(await take(race, tag, 'd', 1, 30)).toEqual([])
    expect(await take(race, tag, 'd', 1, 30)).toBe('dup')
    expect(raceProblems(await redis.read())).toEqual([])
    await server.command('CONFIG', 'SET', 'maxmemory', 1)
    await expect(race.probe(QUEUE, null)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await server.command('EXISTS', ...redis.keys())).toBe(0)
    const next = await openRace(race, 2)
    expect(await take(race, next, 'a', 1, 1)).toEqual([])
  })
})

describe('a server that does not say who it is', () => {
  test('an epoch opened without an identity works; one opened with it is refused', async () => {
    const server = await plainServer()
    const admin = await connect({ url: server.url }, 'acl')
    const known = await openRace(admin.race, 1)
    await server.command('ACL', 'SETUSER', 'app', 'on', '>secret', '~acl:*', '&acl:*', '+@all', '-info')
    const url = server.url.replace('redis://', 'redis://app:secret@')
    const { race } = await connect({ url }, 'acl')
    expect(await race.identity(QUEUE)).toBe('-')
    expect((await CALLS['take']!(race, known)).refused).toEqual({ why: 'IDENTITY', redisId: '-', epoch: known })
    const wrong = { epoch: 2, redisId: 'x', firstLease: 1, version: 1, paused: false, lowerLaneShare: 16 }
    expect(await race.open(QUEUE, wrong)).toEqual({ kind: 'identity', redisId: '-' })
    const tag = await openRace(race, 2)
    await push(race, tag, tokens(1, 2))
    expect(await take(race, tag, 'a', 1, 5)).toEqual([1, 2])
    expect((await CALLS['take']!(race, known)).refused).toEqual({ why: 'EPOCH', redisId: '-', epoch: tag })
  })
})

describe('a Cluster', () => {
  test('all keys of a queue are in one slot; the bell is heard', async () => {
    const server = await start({
      appendOnly: false,
      config: { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' },
    })
    await server.command('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    await expect
      .poll(async () => String(await server.command('CLUSTER', 'INFO')), { timeout: 15_000, interval: 50 })
      .toContain('cluster_state:ok')
    const { race, link } = await connect({ cluster: [server.url] })
    expect(link.isCluster).toBe(true)
    const tag = await openRace(race, 1)
    expect(await take(race, tag, 'a', 1, 5)).toEqual([])
    const rung = new Promise<string>((resolve) => race.listen(resolve))
    await push(race, tag, [...tokens(1, 2), ...tokens(3, 2, 0)])
    expect(await rung).toBe(QUEUE)
    expect(await take(race, tag, 'a', 2, 5)).toEqual([3, 4, 1, 2])
    expect(await holdings(race, tag, 'a', 2)).toEqual([1, 2, 3, 4])
  })
})

describe('an unknown outcome', () => {
  test('a server that dies under a call, and one that is gone, are errors that can be told', async () => {
    const server = await start({ appendOnly: false })
    const { race } = await connect({ url: server.url })
    const tag = await openRace(race, 1)
    const calls = Promise.allSettled(Array.from({ length: 20 }, (_, at) => take(race, tag, 'a', at + 1, 1)))
    await server.kill()
    const results = await calls
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    }
    await expect(take(race, tag, 'a', 99, 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
