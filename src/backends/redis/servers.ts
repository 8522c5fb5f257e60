// Is the server there, and how full is it: a few small questions with a bound, for health and alerts. On a Cluster every
// master answers for itself. Whatever goes wrong is part of the answer.
import { LIMITS } from '../../core/limits.ts'
import { withoutPasswords } from '../../core/secrets.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Served, ServerState } from '../../store/diagnosis.ts'
import type { RedisLink, RedisNode, RedisServer } from './link.ts'
import { serverOf } from './server-url.ts'

export function redisServers(link: Pick<RedisLink, 'onMasters'>, clock: Clock, server: RedisServer): Served['servers'] {
  const name = placeOf(server)
  return async () => {
    try {
      const asked = link.onMasters((node) => stateOf(node, clock))
      const states = await bounded(clock, LIMITS.pingMaxMs, 'Redis', asked)
      return states.length > 0 ? states : [silent(name, new Error('no master could be asked'))]
    } catch (error) {
      return [silent(name, error)]
    }
  }
}

async function stateOf(node: RedisNode, clock: Clock): Promise<ServerState> {
  const startMs = clock.monoMs()
  try {
    await node.command('PING')
    const pingMs = clock.monoMs() - startMs
    const info = await infoOf(node)
    const number = (field: string): number => Number(info.get(field) ?? 0)
    const clients = info.has('connected_clients') ? { clients: number('connected_clients') } : {}
    const memory = info.has('used_memory')
      ? { memory: { usedBytes: number('used_memory'), maxBytes: number('maxmemory') || null } }
      : {}
    return { kind: 'redis', name: node.name, pingMs, ...clients, ...memory }
  } catch (error) {
    return silent(node.name, error)
  }
}

/** Empty where INFO is not allowed. One section per call: servers before 7 take no more. */
async function infoOf(node: RedisNode): Promise<ReadonlyMap<string, string>> {
  const ask = (section: string) => node.command('INFO', section).catch(() => '')
  const text = [await ask('memory'), await ask('clients')].join('\n')
  return new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]))
}

function silent(name: string, error: unknown): ServerState {
  const message = error instanceof Error ? error.message : String(error)
  return { kind: 'redis', name, pingMs: null, error: withoutPasswords(message) }
}

function placeOf(options: RedisServer): string {
  const { server, nodes } = serverOf(options)
  if (nodes !== undefined) return nodes.map(({ host, port }) => `${host}:${port}`).join(',')
  return server.name ?? `${server.host ?? '127.0.0.1'}:${server.port ?? ''}`
}
