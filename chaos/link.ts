// The network of one process: a proxy of its own before each server that it uses, so that one process can be cut off
// while the others are not.
import { startFaultProxy } from '../tests/support/fault-proxy.ts'
import type { FaultProxy } from '../tests/support/fault-proxy.ts'
import { startTcpProxy } from '../tests/support/tcp-proxy.ts'
import type { TcpProxy } from '../tests/support/tcp-proxy.ts'
import type { Place } from './system.ts'

export interface Link {
  readonly postgres?: FaultProxy
  readonly redis?: TcpProxy
  /** The servers as the process sees them. */
  readonly place: Place
  /** The process stays where it is, and reaches other servers. */
  moveTo(place: Place): void
  close(): Promise<void>
}

export async function openLink({ backend, ...urls }: Place): Promise<Link> {
  const postgres = urls.postgres === undefined ? undefined : await startFaultProxy(portOf(urls.postgres))
  const redis = urls.redis === undefined ? undefined : await startTcpProxy(portOf(urls.redis))
  let now: Omit<Place, 'backend'> = urls
  return {
    ...(postgres && { postgres }),
    ...(redis && { redis }),
    place: {
      backend,
      ...(postgres && { postgres: postgres.urlOf(urls.postgres!) }),
      ...(redis && { redis: `redis://127.0.0.1:${redis.port}` }),
    },
    moveTo(next) {
      if (next.postgres !== undefined && next.postgres !== now.postgres) moveProxy(postgres, next.postgres)
      if (next.redis !== undefined && next.redis !== now.redis) moveProxy(redis, next.redis)
      now = next
    },
    async close() {
      await Promise.all([postgres?.close(), redis?.close()])
    },
  }
}

function moveProxy(proxy: FaultProxy | TcpProxy | undefined, url: string): void {
  proxy?.retarget(portOf(url))
  proxy?.resetAll()
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
