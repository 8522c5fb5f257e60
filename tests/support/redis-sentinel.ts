// A primary, a replica and three sentinels, real processes on loopback. The sentinels know each other and the replica
// from the start, which they would otherwise learn within some seconds.
import { randomBytes } from 'node:crypto'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { startReplicaOf } from './redis-replica.ts'
import { startRedis } from './redis-server.ts'
import type { RedisProcess } from './redis-server.ts'
import { until } from './until.ts'

export interface RedisSentinels {
  /** Of the primary, as clients ask for it. */
  readonly name: string
  readonly urls: readonly string[]
  readonly sentinels: readonly RedisProcess[]
  /** Both servers; which one is the primary changes. */
  readonly servers: readonly RedisProcess[]
  /** According to the sentinels, who all agree. */
  primary(): Promise<RedisProcess>
  /** Asks for one, nobody having failed; resolves to the new primary when the old one follows it. */
  failover(): Promise<RedisProcess>
  /** After the primary was killed or paused: resolves to the new one. */
  switchedFrom(old: RedisProcess): Promise<RedisProcess>
  stop(): Promise<void>
}

const NAME = 'mill'
const SENTINELS = 3
const QUORUM = 2
const DOWN_AFTER_MS = 500
/** After a split vote they wait twice as long, and try again. */
const FAILOVER_TIMEOUT_MS = 2_000
const SWITCH_MAX_MS = 30_000

export async function startRedisSentinels(): Promise<RedisSentinels> {
  const started: RedisProcess[] = []
  const stop = async (): Promise<void> => {
    // The sentinels first: nobody shall be promoted any more.
    for (const server of started.toReversed()) await server.stop()
  }
  try {
    const first = await startRedis()
    started.push(first)
    const replica = await startReplicaOf(first)
    started.push(replica)
    const sentinels = await startAll(first, replica)
    started.push(...sentinels)
    await Promise.all(sentinels.map(hurry))
    const topology = topologyOf([first, replica], sentinels)
    await settled(sentinels)
    return { ...topology, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function topologyOf(
  servers: readonly RedisProcess[],
  sentinels: readonly RedisProcess[],
): Omit<RedisSentinels, 'stop'> {
  async function agreed(): Promise<RedisProcess | undefined> {
    const ports = new Set(await Promise.all(sentinels.map(primaryPort)))
    const [port] = ports
    return ports.size === 1 ? servers.find((server) => server.port === port) : undefined
  }
  async function primary(): Promise<RedisProcess> {
    const server = await agreed()
    if (server === undefined) throw new Error('the sentinels do not agree on a primary')
    return server
  }
  async function switchedFrom(old: RedisProcess): Promise<RedisProcess> {
    let now: RedisProcess | undefined
    const isDone = async (): Promise<boolean> => {
      now = await agreed()
      if (now === undefined || now.port === old.port) return false
      const [role] = (await now.command('ROLE')) as readonly unknown[] // the first of its fields
      return role === 'master'
    }
    await until('another primary', isDone, { withinMs: SWITCH_MAX_MS })
    return now!
  }
  return {
    name: NAME,
    urls: sentinels.map(({ url }) => url),
    sentinels,
    servers,
    primary,
    switchedFrom,
    async failover() {
      const old = await primary()
      await sentinels[0]!.command('SENTINEL', 'FAILOVER', NAME)
      const now = await switchedFrom(old)
      await settled(sentinels)
      return now
    },
  }
}

async function startAll(primary: RedisProcess, replica: RedisProcess): Promise<readonly RedisProcess[]> {
  const members: { readonly port: number; readonly id: string }[] = []
  for (let index = 0; index < SENTINELS; index += 1) {
    members.push({ port: await freePort(), id: randomBytes(20).toString('hex') })
  }
  return Promise.all(
    members.map((self) => {
      const others = members.filter((member) => member !== self)
      return startRedis({
        isSentinel: true,
        port: self.port,
        config: {
          'sentinel myid': self.id,
          [`sentinel monitor ${NAME}`]: `127.0.0.1 ${primary.port} ${QUORUM}`,
          [`sentinel down-after-milliseconds ${NAME}`]: String(DOWN_AFTER_MS),
          [`sentinel failover-timeout ${NAME}`]: String(FAILOVER_TIMEOUT_MS),
          [`sentinel known-replica ${NAME}`]: `127.0.0.1 ${replica.port}`,
          ...Object.fromEntries(
            others.map(({ port, id }) => [`sentinel known-sentinel ${NAME} 127.0.0.1 ${port}`, id] as const),
          ),
        },
      })
    }),
  )
}

/**
 * They look around every 10 s and talk every 2 s otherwise. Not shorter: in a failover they look once a second, and
 * whoever has not heard of it within four talks makes the new primary a replica again. `ping-period` stays: what was
 * seen longer ago than five of them does not count when a replica is chosen.
 */
const PERIODS_MS = { 'info-period': 500, 'publish-period': 500, 'ask-period': 100 }

async function hurry(sentinel: RedisProcess): Promise<void> {
  // Before version 7 there is no such command, and everything takes some seconds longer.
  await sentinel.command('SENTINEL', 'DEBUG', ...Object.entries(PERIODS_MS).flat()).catch(() => undefined)
}

/** Of one mind, with a replica that could be promoted. */
async function settled(sentinels: readonly RedisProcess[]): Promise<void> {
  await until('the sentinels to know a replica', () => areSettled(sentinels), { withinMs: SWITCH_MAX_MS })
}

async function areSettled(sentinels: readonly RedisProcess[]): Promise<boolean> {
  const answers = await Promise.all(sentinels.map((sentinel) => sentinel.command('SENTINEL', 'CKQUORUM', NAME)))
  const isWhole = answers.every((answer) => String(answer).startsWith(`OK ${SENTINELS} usable`))
  // A replica is a candidate only when its INFO has been read.
  const replicas = await Promise.all(sentinels.map((sentinel) => sentinel.command('SENTINEL', 'REPLICAS', NAME)))
  const areLinked = replicas.every((answer) => {
    const text = String(answer)
    return text.includes('master-link-status,ok') && !text.includes('s_down')
  })
  return isWhole && areLinked
}

async function primaryPort(sentinel: RedisProcess): Promise<number> {
  const address = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)
  return Number((address as readonly string[])[1]) // host and port
}
