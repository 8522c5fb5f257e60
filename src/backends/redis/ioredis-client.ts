// One connection of ioredis, set up so that nothing is kept for later or sent again behind our back. ioredis is an
// optional peer, loaded on first use; chosen by measurement: docs/dependencies.md.
import type { Cluster, Redis } from 'ioredis'
import { MillraceError, isMillraceError } from '../../core/errors.ts'
import { bounded } from '../../runtime/bounded.ts'
import { sleep, systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import type { RedisServer } from './link.ts'
import { redisError } from './redis-errors.ts'
import { serverOf } from './server-url.ts'

export type Client = Redis | Cluster

export interface ClientOptions {
  readonly server: RedisServer
  /** Shown by CLIENT LIST. */
  readonly name: string
  readonly connectTimeoutMs: number
  readonly logger: Logger
}

const RECONNECT_MIN_MS = 20
const RECONNECT_MAX_MS = 1_000
const KEEP_ALIVE_MS = 10_000
/** A connection that owes an answer this long is dead, whatever the network says. */
const SILENCE_MAX_MS = 20_000
const QUIT_MAX_MS = 500

/** Resolves when the server has let us in; after that it reconnects by itself, for good. */
export async function openClient(options: ClientOptions, role: string): Promise<Client> {
  const client = await createClient(options, role)
  let last: unknown
  // Without a listener the library prints. Calls report their own errors, so this is for the log alone; but why
  // connecting failed is only said here.
  client.on('error', (error: unknown) => {
    last = error
    options.logger.debug({ error: redisError(error, 'redis').message }, 'a connection to Redis failed')
  })
  try {
    // Somebody may listen there and say nothing.
    await bounded(systemClock, options.connectTimeoutMs, 'connecting to Redis', client.connect())
  } catch (error) {
    client.disconnect()
    if (last === undefined && isMillraceError(error, 'STORE_TIMEOUT')) throw silent(options)
    throw redisError(last ?? error, 'connecting to Redis')
  }
  return client
}

function silent({ connectTimeoutMs }: ClientOptions): MillraceError {
  const message = `connecting to Redis: it did not let us in within ${connectTimeoutMs} ms; it may be loading its data, and TLS (rediss://) must be on at both ends or at none`
  return new MillraceError('STORE_TIMEOUT', message, { retryable: true })
}

/** Lets what is under way end, at most a moment. */
export async function quitClient(client: Client): Promise<void> {
  if (client.status === 'ready') {
    await Promise.race([client.quit().catch(() => undefined), sleep(systemClock, QUIT_MAX_MS)])
  }
  client.disconnect()
}

export function loadLibrary(): Promise<Pick<typeof import('ioredis'), 'Cluster' | 'Command' | 'Redis'>> {
  return import('ioredis').catch((cause: unknown) => {
    throw new MillraceError('REDIS_CLIENT_MISSING', 'Redis needs the package ioredis: run `npm install ioredis`', {
      cause,
    })
  })
}

async function createClient(options: ClientOptions, role: string): Promise<Client> {
  const library = await loadLibrary()
  const { server, nodes } = serverOf(options.server)
  const settings = {
    ...server,
    // The server takes no spaces in it.
    connectionName: `${options.name}:${role}`.replace(/\s+/g, '-'),
    connectTimeout: options.connectTimeoutMs,
    keepAlive: KEEP_ALIVE_MS,
    socketTimeout: SILENCE_MAX_MS,
    lazyConnect: true,
    disableClientInfo: true,
    protocol: 2 as const,
    // Nothing is kept for later or sent again behind our back: see link.ts.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // The link subscribes anew itself: a promise of the library that fails here has nobody to tell, and Node ends then.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: backOff,
    // The address of a primary may have moved while this connection stayed with the old one.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
  }
  if (nodes === undefined) return new library.Redis(settings)
  const { host: _, port: __, ...redisOptions } = settings
  const cluster = new library.Cluster([...nodes], {
    redisOptions,
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: backOff,
    // A moved slot is asked for again; a lost connection is not.
    maxRedirections: 8,
    retryDelayOnFailover: 0,
  })
  cluster.on('+node', hearAsking)
  return cluster
}

/** While a slot moves the library says ASKING before a command and hears of the command alone: a failure of the first would end Node. */
function hearAsking(node: Redis): void {
  const asking = node.asking.bind(node)
  node.asking = (...args: readonly never[]) => {
    const answer = asking(...args)
    answer.catch(() => undefined)
    return answer
  }
}

const { random } = createRuntime()

function backOff(times: number): number {
  return Math.min(RECONNECT_MIN_MS * 2 ** Math.min(times - 1, 10), RECONNECT_MAX_MS) * (0.75 + random() / 2)
}
