// Where jobs are kept: the stores that the options of createMillrace name, and with none of them the embedded
// PostgreSQL.
import { startEmbedded } from './backends/embedded/start-embedded.ts'
import { hybrid } from './backends/hybrid/backend.ts'
import type { HybridOptions } from './backends/hybrid/backend.ts'
import { postgres } from './backends/postgres/backend.ts'
import type { PostgresOptions } from './backends/postgres/backend.ts'
import { redis } from './backends/redis/backend.ts'
import type { RedisOptions } from './backends/redis/backend.ts'
import { MillraceError } from './core/errors.ts'
import { invalidOption } from './core/names.ts'
import type { Logger } from './runtime/logger.ts'
import type { Backend } from './store/ports.ts'

export interface StoreOptions {
  /** The URL of a PostgreSQL server, or all its options. Without a store of any kind: the embedded one. */
  readonly postgres?: string | Omit<PostgresOptions, 'logger' | 'clock'>
  /**
   * The URL of a Redis server, or all its options. Alone: jobs are kept in Redis. Beside `postgres`: they are kept there,
   * and Redis hands them out (`claims`, `window`, `windowTotal`).
   */
  readonly redis?: string | RedisStoreOptions
  /** The schema of the tables in PostgreSQL. Default `millrace`. */
  readonly schema?: string
  /** Where the embedded PostgreSQL keeps its data. Default `.millrace`. */
  readonly dataDir?: string
  /** A store made by hand: `memory()` for tests and experiments. */
  readonly backend?: Backend
  /** Several stores by name; one of them is `default`. */
  readonly connections?: Readonly<Record<string, Backend>>
}

export interface RedisStoreOptions
  extends
    Omit<RedisOptions, 'logger' | 'clock' | 'clockKey'>,
    Pick<HybridOptions, 'claims' | 'window' | 'windowTotal'> {}

export interface Stores {
  readonly connections: Readonly<Record<string, Backend>>
  /** After the backends have stopped. */
  release(): Promise<void>
}

export async function openStores(options: StoreOptions, logger: Logger): Promise<Stores> {
  const given = checkStores(options)
  if (given !== null) return { connections: given, release: () => Promise.resolve() }
  const schema = options.schema === undefined ? {} : { schema: options.schema }
  const ledger = typeof options.postgres === 'string' ? { url: options.postgres } : options.postgres
  const race = typeof options.redis === 'string' ? { url: options.redis } : options.redis
  const backend = openServers(ledger === undefined ? undefined : { ...schema, ...ledger }, race, logger)
  if (backend !== undefined) return { connections: { default: backend }, release: () => Promise.resolve() }
  const dir = options.dataDir === undefined ? {} : { dir: options.dataDir }
  const server = await startEmbedded({ ...dir, logger })
  logger.info({ dir: server.dir }, 'no store was named: jobs are kept in the embedded PostgreSQL')
  return { connections: { default: postgres({ ...schema, url: server.url, logger }) }, release: () => server.stop() }
}

/** PostgreSQL, Redis, or the one with the other before it. */
export function openServers(
  ledger: PostgresOptions | undefined,
  race: RedisStoreOptions | undefined,
  logger: Logger,
): Backend | undefined {
  if (race === undefined) return ledger === undefined ? undefined : postgres({ ...ledger, logger })
  const { claims, window, windowTotal, ...server } = race
  const own = {
    ...(claims !== undefined && { claims }),
    ...(window !== undefined && { window }),
    ...(windowTotal !== undefined && { windowTotal }),
  }
  if (ledger === undefined) return redis({ ...server, ...own, logger })
  const { prefix, applicationName, ...where } = server
  const name = applicationName === undefined ? {} : { applicationName }
  const keys = prefix === undefined ? {} : { prefix }
  return hybrid({ postgres: { ...name, ...ledger }, redis: where, ...keys, ...own, logger })
}

/** The stores that were made by hand; null when it is PostgreSQL, embedded or not, or Redis. */
function checkStores({ postgres: server, redis: redisServer, schema, dataDir, backend, connections }: StoreOptions) {
  const all = { postgres: server, redis: redisServer, backend, connections }
  const named = Object.entries(all).filter(([, value]) => value !== undefined)
  const isHybrid = named.length === 2 && server !== undefined && redisServer !== undefined
  if (named.length > 1 && !isHybrid) {
    const names = named.map(([name]) => `\`${name}\``).join(' and ')
    throw new MillraceError('INVALID_OPTION', `createMillrace was given ${names}: pass one of them`)
  }
  for (const [name, value] of Object.entries({ schema, dataDir })) {
    if (value !== undefined && (typeof value !== 'string' || value === '')) throw invalidOption(name, value, 'a name')
  }
  if (schema !== undefined && named.length > 0 && server === undefined) {
    throw new MillraceError('INVALID_OPTION', '`schema` is an option of PostgreSQL, and another store was named')
  }
  if (dataDir !== undefined && named.length > 0) {
    throw new MillraceError('INVALID_OPTION', '`dataDir` is for the embedded PostgreSQL, and another store was named')
  }
  if (!isAddress(server)) {
    throw invalidOption('postgres', server, "a URL such as 'postgres://user:password@host/database'")
  }
  if (!isAddress(redisServer))
    throw invalidOption('redis', redisServer, "a URL such as 'redis://user:password@host:6379/0'")
  if (backend !== undefined) return { default: checkBackend(backend, 'backend') }
  if (connections === undefined) return null
  for (const [name, one] of Object.entries(connections)) checkBackend(one, `connections.${name}`)
  return connections
}

/** Its text and its options are checked by whoever connects. */
function isAddress(value: unknown): boolean {
  return value === undefined || typeof value === 'string' || (typeof value === 'object' && value !== null)
}

/** `memory` without its parentheses is the usual slip. */
function checkBackend(backend: Backend, what: string): Backend {
  if (typeof backend === 'object' && backend !== null && 'jobs' in backend && 'capabilities' in backend) return backend
  throw invalidOption(what, backend, 'a backend such as memory()')
}
