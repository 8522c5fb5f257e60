// Where jobs are kept: the stores that the options of createMillrace name, and with none of them the embedded
// PostgreSQL.
import { startEmbedded } from './backends/embedded/start-embedded.ts'
import { hybrid } from './backends/hybrid/backend.ts'
import type { HybridOptions } from './backends/hybrid/backend.ts'
import { postgres } from './backends/postgres/backend.ts'
import type { PostgresOptions } from './backends/postgres/backend.ts'
import type { RedisServer } from './backends/redis/link.ts'
import { MillraceError } from './core/errors.ts'
import { invalidOption } from './core/names.ts'
import type { Logger } from './runtime/logger.ts'
import type { Backend } from './store/ports.ts'

export interface StoreOptions {
  /** The URL of a PostgreSQL server, or all its options. Without a store of any kind: the embedded one. */
  readonly postgres?: string | Omit<PostgresOptions, 'logger' | 'clock'>
  /** Beside `postgres`: the URL of a Redis server, or where it is. Jobs stay in PostgreSQL; Redis hands them out. */
  readonly redis?: string | (RedisServer & Pick<HybridOptions, 'prefix' | 'claims' | 'window'>)
  /** The schema of the tables in PostgreSQL. Default `millrace`. */
  readonly schema?: string
  /** Where the embedded PostgreSQL keeps its data. Default `.millrace`. */
  readonly dataDir?: string
  /** A store made by hand: `memory()` for tests and experiments. */
  readonly backend?: Backend
  /** Several stores by name; one of them is `default`. */
  readonly connections?: Readonly<Record<string, Backend>>
}

export interface Stores {
  readonly connections: Readonly<Record<string, Backend>>
  /** After the backends have stopped. */
  release(): Promise<void>
}

export async function openStores(options: StoreOptions, logger: Logger): Promise<Stores> {
  const given = checkStores(options)
  if (given !== null) return { connections: given, release: () => Promise.resolve() }
  const schema = options.schema === undefined ? {} : { schema: options.schema }
  if (options.postgres !== undefined) {
    const server = typeof options.postgres === 'string' ? { url: options.postgres } : options.postgres
    if (options.redis !== undefined) {
      const { prefix, claims, window, ...redis } =
        typeof options.redis === 'string' ? { url: options.redis } : options.redis
      const own = { ...(prefix !== undefined && { prefix }), ...(claims !== undefined && { claims }) }
      const room = window === undefined ? {} : { window }
      const both = hybrid({ postgres: { ...schema, ...server }, redis, ...own, ...room, logger })
      return { connections: { default: both }, release: () => Promise.resolve() }
    }
    return { connections: { default: postgres({ ...schema, ...server, logger }) }, release: () => Promise.resolve() }
  }
  const dir = options.dataDir === undefined ? {} : { dir: options.dataDir }
  const server = await startEmbedded({ ...dir, logger })
  logger.info({ dir: server.dir }, 'no store was named: jobs are kept in the embedded PostgreSQL')
  return { connections: { default: postgres({ ...schema, url: server.url, logger }) }, release: () => server.stop() }
}

/** The stores that were made by hand; null when it is PostgreSQL, embedded or not. */
function checkStores({ postgres: server, schema, dataDir, backend, connections }: StoreOptions) {
  const named = Object.entries({ postgres: server, backend, connections }).filter(([, value]) => value !== undefined)
  if (named.length > 1) {
    const names = named.map(([name]) => `\`${name}\``).join(' and ')
    throw new MillraceError('INVALID_OPTION', `createMillrace was given ${names}: pass one of them`)
  }
  for (const [name, value] of Object.entries({ schema, dataDir })) {
    if (value !== undefined && (typeof value !== 'string' || value === '')) throw invalidOption(name, value, 'a name')
  }
  if (schema !== undefined && (backend !== undefined || connections !== undefined)) {
    throw new MillraceError('INVALID_OPTION', '`schema` is an option of PostgreSQL: a store made by hand has its own')
  }
  if (dataDir !== undefined && named.length > 0) {
    throw new MillraceError('INVALID_OPTION', '`dataDir` is for the embedded PostgreSQL, and another store was named')
  }
  if (server !== undefined && typeof server !== 'string' && (typeof server !== 'object' || server === null)) {
    throw invalidOption('postgres', server, "a URL such as 'postgres://user:password@host/database'")
  }
  if (backend !== undefined) return { default: checkBackend(backend, 'backend') }
  if (connections === undefined) return null
  for (const [name, one] of Object.entries(connections)) checkBackend(one, `connections.${name}`)
  return connections
}

/** `memory` without its parentheses is the usual slip. */
function checkBackend(backend: Backend, what: string): Backend {
  if (typeof backend === 'object' && backend !== null && 'jobs' in backend && 'capabilities' in backend) return backend
  throw invalidOption(what, backend, 'a backend such as memory()')
}
