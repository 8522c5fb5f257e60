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
  close(): Promise<void>
}

export async function openLink({ backend, ...urls }: Place): Promise<Link> {
  const postgres = urls.postgres === undefined ? undefined : await startFaultProxy(portOf(urls.postgres))
  const redis = urls.redis === undefined ? undefined : await startTcpProxy(portOf(urls.redis))
  return {
    ...(postgres && { postgres }),
    ...(redis && { redis }),
    place: {
      backend,
      ...(postgres && { postgres: postgres.urlOf(urls.postgres!) }),
      ...(redis && { redis: `redis://127.0.0.1:${redis.port}` }),
    },
    async close() {
      await Promise.all([postgres?.close(), redis?.close()])
    },
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
