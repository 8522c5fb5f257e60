// A real Redis Cluster for tests: masters on free ports of loopback, all slots given out, no replicas.
import { startRedis } from './redis-server.ts'
import type { RedisProcess } from './redis-server.ts'

export interface TestCluster {
  readonly urls: readonly string[]
  readonly nodes: readonly RedisProcess[]
  stop(): Promise<void>
}

const SLOTS = 16_384
const READY_MAX_MS = 20_000

export async function startRedisCluster(masters: number): Promise<TestCluster> {
  const config = { 'cluster-announce-ip': '127.0.0.1', 'cluster-enabled': 'yes', 'cluster-config-file': 'nodes.conf', 'cluster-node-timeout': '2000' }
  const nodes = await Promise.all(Array.from({ length: masters }, () => startRedis({ config })))
  for (const [index, node] of nodes.entries()) {
    const [first, next] = [index, index + 1].map((at) => Math.floor((SLOTS * at) / masters))
    await node.command('CLUSTER', 'ADDSLOTSRANGE', first!, next! - 1)
    if (index > 0) await node.command('CLUSTER', 'MEET', '127.0.0.1', nodes[0]!.port)
  }
  await Promise.all(nodes.map((node) => untilWhole(node, masters)))
  return {
    urls: nodes.map(({ url }) => url),
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

async function untilWhole(node: RedisProcess, masters: number): Promise<void> {
  const untilMs = performance.now() + READY_MAX_MS
  for (;;) {
    const info = String(await node.command('CLUSTER', 'INFO'))
    if (info.includes('cluster_state:ok') && info.includes(`cluster_size:${masters}`)) return
    if (performance.now() > untilMs) throw new Error(`the cluster did not form within ${READY_MAX_MS} ms:\n${info}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
