// A Redis Cluster of real processes on loopback: three masters or as many as asked for, all slots assigned, no replicas.
import { createServer } from 'node:net'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { startRedis } from './redis-server.ts'
import type { RedisProcess, RedisServerOptions } from './redis-server.ts'
import { until } from './until.ts'

export interface RedisCluster {
  readonly nodes: readonly RedisProcess[]
  readonly urls: readonly string[]
  /** The master that has the slot of this key; slots stay where they were assigned. */
  nodeOf(key: string): Promise<RedisProcess>
  /** Resolves when every node that runs says that all slots are served. */
  ready(): Promise<void>
  stop(): Promise<void>
}

const SLOTS = 16_384
const MASTERS = 3
/** The port of the bus between nodes, so far above that of the clients. */
const BUS_OFFSET = 10_000
const PORT_MAX = 65_535
const PORT_TRIES_MAX = 200
const NODE_TIMEOUT_MS = 1_000

export interface RedisClusterOptions extends Pick<RedisServerOptions, 'appendOnly' | 'config'> {
  /** Default 3. */
  readonly masters?: number
}

export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters = MASTERS } = options
  const nodes: RedisProcess[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    for (let index = 0; index < masters; index += 1) nodes.push(await startNode(options))
    await join(nodes)
    await ready(nodes)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    nodes,
    urls: nodes.map(({ url }) => url),
    async nodeOf(key) {
      const slot = Number(await nodes[0]!.command('CLUSTER', 'KEYSLOT', key))
      return nodes[shares(masters).findIndex(({ last }) => slot <= last)]!
    },
    ready: () => ready(nodes),
    stop,
  }
}

async function startNode({ appendOnly = true, config }: RedisServerOptions): Promise<RedisProcess> {
  return startRedis({
    port: await freePortWithBus(),
    appendOnly,
    config: {
      'cluster-enabled': 'yes',
      // A node that has met nobody does not know its own.
      'cluster-announce-ip': '127.0.0.1',
      'cluster-config-file': 'nodes.conf',
      'cluster-node-timeout': String(NODE_TIMEOUT_MS),
      ...config,
    },
  })
}

async function join(nodes: readonly RedisProcess[]): Promise<void> {
  const [first] = nodes
  for (const [index, node] of nodes.entries()) {
    const { first: from, last } = shares(nodes.length)[index]!
    await node.command('CLUSTER', 'ADDSLOTSRANGE', from, last)
    // Different from the start: nodes that agree on an epoch first have to settle who keeps it.
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    if (node !== first) await node.command('CLUSTER', 'MEET', '127.0.0.1', first!.port)
  }
}

function shares(masters: number): readonly { readonly first: number; readonly last: number }[] {
  const bounds = Array.from({ length: masters + 1 }, (_, index) => Math.round((index * SLOTS) / masters))
  return bounds.slice(1).map((end, index) => ({ first: bounds[index]!, last: end - 1 }))
}

async function ready(nodes: readonly RedisProcess[]): Promise<void> {
  await until('the cluster to serve all slots', async () => {
    const infos = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')))
    return infos.map(String).every((info) => {
      const says = (line: string): boolean => info.split(/\r?\n/).includes(line)
      return says('cluster_state:ok') && says(`cluster_slots_ok:${SLOTS}`) && says(`cluster_size:${nodes.length}`)
    })
  })
}

async function freePortWithBus(): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES_MAX; tries += 1) {
    const port = await freePort()
    if (port + BUS_OFFSET <= PORT_MAX && (await isFree(port + BUS_OFFSET))) return port
  }
  throw new Error(`no port is free together with the one ${BUS_OFFSET} above`)
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
