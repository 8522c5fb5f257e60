// The link over ioredis: one connection for calls, one for messages. ioredis is an optional peer, loaded on first use.
// Chosen by measurement: docs/dependencies.md.
import type { Cluster, Redis } from 'ioredis'
import { MillraceError } from '../../core/errors.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { serverOf } from './server-url.ts'
import type { RedisLink, RedisNode, RedisServer, RedisValue } from './link.ts'
import { isNoScript, redisError } from './redis-errors.ts'
import type { Script } from './script.ts'

export interface LinkOptions {
  readonly server: RedisServer
  /** Shown by CLIENT LIST. */
  readonly name: string
  readonly connectTimeoutMs: number
  readonly logger: Logger
  /** For the waits between tries. */
  readonly runtime?: Runtime
}

const RECONNECT_MIN_MS = 20
const RECONNECT_MAX_MS = 1_000
const QUIT_MAX_MS = 500

export function createLink(options: LinkOptions): RedisLink {
  let calls: Redis | Cluster | undefined
  let messages: Redis | Cluster | undefined
  let closed = false
  const isCluster = options.server.cluster !== undefined

  async function open(role: string): Promise<Redis | Cluster> {
    const client = await createClient(options, role)
    // Without a listener the library prints; calls report their own errors, so this is for the log alone.
    client.on('error', (error: unknown) => options.logger.debug({ error }, 'redis: a connection failed'))
    try {
      await client.connect()
    } catch (error) {
      client.disconnect()
      throw redisError(error, 'connecting to Redis')
    }
    return client
  }

  function client(): Redis | Cluster {
    if (calls !== undefined && !closed) return calls
    throw new MillraceError('STOPPED', 'the Redis backend was stopped, or never started')
  }

  async function send(script: Script, keys: readonly string[], args: readonly RedisValue[], binary: boolean) {
    const method = binary ? 'callBuffer' : 'call'
    const rest = [String(keys.length), ...keys, ...args]
    try {
      return await client()[method]('evalsha', [script.sha, ...rest])
    } catch (error) {
      if (!isNoScript(error)) throw redisError(error, script.name)
    }
    try {
      // Nothing ran: the server does not know the text yet, or no longer.
      return await client()[method]('eval', [script.text, ...rest])
    } catch (error) {
      throw redisError(error, script.name)
    }
  }

  return {
    isCluster,
    get isConnected() {
      return calls?.status === 'ready' && !closed
    },
    async connect() {
      closed = false
      calls ??= await open('calls')
    },
    async close() {
      if (closed) return
      closed = true
      const open = [calls, messages].filter((one) => one !== undefined)
      calls = messages = undefined
      const { clock } = options.runtime ?? createRuntime()
      await Promise.all(open.map((one) => quit(one, clock)))
    },
    run: (script, keys, args) => send(script, keys, args, false),
    runBinary: (script, keys, args) => send(script, keys, args, true),
    async command(name, ...args) {
      try {
        return await client().call(name, [...args])
      } catch (error) {
        throw redisError(error, name)
      }
    },
    async onMasters(ask) {
      const answers = []
      for (const node of mastersOf(client())) answers.push(await ask(node))
      return answers
    },
    async subscribe(channel, onMessage, onBack) {
      messages ??= await open('messages')
      const own = messages
      const listener = (from: string, message: string): void => {
        if (from === channel) onMessage(message)
      }
      own.on('message', listener)
      own.on('ready', onBack)
      try {
        await own.subscribe(channel)
      } catch (error) {
        throw redisError(error, 'subscribe')
      }
      return () => {
        own.off('message', listener)
        own.off('ready', onBack)
      }
    },
  }
}

async function createClient(options: LinkOptions, role: string): Promise<Redis | Cluster> {
  const library = await import('ioredis').catch((cause: unknown) => {
    throw new MillraceError('REDIS_CLIENT_MISSING', 'Redis needs the package ioredis: run `npm install ioredis`', {
      cause,
    })
  })
  const { random } = options.runtime ?? createRuntime()
  const { server, nodes } = serverOf(options.server)
  const settings = {
    ...server,
    connectionName: `${options.name} ${role}`,
    connectTimeout: options.connectTimeoutMs,
    lazyConnect: true,
    disableClientInfo: true,
    protocol: 2 as const,
    // Nothing is kept for later or sent again behind our back: see link.ts.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times: number) => backOff(times, random),
  }
  if (nodes === undefined) return new library.Redis(settings)
  const { host: _, port: __, ...redisOptions } = settings
  return new library.Cluster([...nodes], {
    redisOptions,
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: (times: number) => backOff(times, random),
    // A moved slot is asked for again; a lost connection is not.
    maxRedirections: 8,
    retryDelayOnFailover: 0,
  })
}

function backOff(times: number, random: () => number): number {
  return Math.min(RECONNECT_MIN_MS * 2 ** Math.min(times - 1, 10), RECONNECT_MAX_MS) * (0.75 + random() / 2)
}

function mastersOf(client: Redis | Cluster): readonly RedisNode[] {
  const nodes = 'nodes' in client ? client.nodes('master') : [client]
  return nodes.map((node) => {
    const name = `${node.options.host ?? 'localhost'}:${node.options.port ?? 6379}`
    return {
      name,
      async command(command, ...args) {
        try {
          return await node.call(command, [...args])
        } catch (error) {
          throw redisError(error, `${command} on ${name}`)
        }
      },
    }
  })
}

async function quit(client: Redis | Cluster, clock: Clock): Promise<void> {
  if (client.status === 'ready') await bounded(clock, QUIT_MAX_MS, 'closing', client.quit()).catch(noop)
  client.disconnect()
}

function noop(): void {}
