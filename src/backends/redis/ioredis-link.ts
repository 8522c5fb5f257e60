// The link over ioredis: one connection for calls, one for messages.
import { MillraceError } from '../../core/errors.ts'
import { Bell } from '../../runtime/bell.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Timer } from '../../runtime/clock.ts'
import { loadLibrary, openClient, quitClient } from './ioredis-client.ts'
import type { Client, ClientOptions } from './ioredis-client.ts'
import { commandClass } from './ioredis-command.ts'
import type { CommandClass } from './ioredis-command.ts'
import type { RedisLink, RedisNode, RedisValue } from './link.ts'
import { isNoScript, redisError } from './redis-errors.ts'
import type { Script } from './script.ts'

export type LinkOptions = ClientOptions

/** A connection that only listens finds out that it is dead by asking. */
const ASK_EVERY_MS = 30_000
/** The server refused, on a connection that lives: rights that are being changed, a script that blocks it. */
const SUBSCRIBE_AGAIN_MS = 1_000

export function createLink(options: LinkOptions): RedisLink {
  const isCluster = options.server.cluster !== undefined
  const calls = oneClient(options, 'calls', (own) => own.on('ready', () => back.ring()))
  const back = new Bell()
  // One for each channel: as many as there are workers in this process.
  const messages = oneClient(options, 'messages', (own) => own.setMaxListeners(0))
  let asking: Timer | undefined
  /** Known once connected. */
  let Command: CommandClass | undefined

  function client(): Client {
    if (calls.now !== undefined) return calls.now
    throw new MillraceError('STOPPED', 'the Redis backend was stopped, or never started')
  }

  async function send(script: Script, keys: readonly string[], args: readonly RedisValue[], binary: boolean) {
    const values = [script.sha, String(keys.length), ...keys, ...args]
    const evaluate = (name: 'evalsha' | 'eval') =>
      client().sendCommand(new Command!(name, values, { replyEncoding: binary ? null : 'utf8' }))
    try {
      return await evaluate('evalsha')
    } catch (error) {
      if (!isNoScript(error)) throw redisError(error, script.name)
    }
    try {
      // Nothing ran: the server does not know the text yet, or no longer.
      values[0] = script.text
      return await evaluate('eval')
    } catch (error) {
      throw redisError(error, script.name)
    }
  }

  function askLater(own: Client): void {
    asking?.cancel()
    asking = systemClock.timer(ASK_EVERY_MS, () => {
      if (own.status === 'ready') own.ping().catch(noop)
      askLater(own)
    })
  }

  return {
    isCluster,
    get isConnected() {
      return calls.now?.status === 'ready'
    },
    async connect() {
      Command ??= commandClass((await loadLibrary()).Command)
      await calls.open()
    },
    onBack: (listener) => back.listen(listener),
    async close() {
      asking?.cancel()
      await Promise.all([calls.close(), messages.close()])
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
      const own = await messages.open()
      askLater(own)
      const listener = (from: string, message: string): void => {
        if (from === channel) onMessage(message)
      }
      let again: Timer | undefined
      let isOver = false
      // What was said before the server knows of us again is lost, so it comes first; asking twice is harmless.
      const onReady = (): void => {
        again?.cancel()
        own.subscribe(channel).then(onBack, (error: unknown) => {
          // A connection that broke comes back by itself.
          if (isOver || own.status !== 'ready') return
          const message = 'Redis tells nothing on a channel that it told of before; asked again in a second'
          options.logger.warn({ channel, error: redisError(error, 'subscribe').message }, message)
          again = systemClock.timer(SUBSCRIBE_AGAIN_MS, onReady)
        })
      }
      own.on('message', listener)
      try {
        await own.subscribe(channel)
      } catch (error) {
        own.off('message', listener)
        throw redisError(error, 'subscribe')
      }
      own.on('ready', onReady)
      return () => {
        isOver = true
        again?.cancel()
        own.off('message', listener)
        own.off('ready', onReady)
        if (own.status === 'ready') own.unsubscribe(channel).catch(noop)
      }
    },
  }
}

/** Opened by the first who asks; whoever asks meanwhile gets the same one. */
function oneClient(options: LinkOptions, role: string, onOpen?: (client: Client) => void) {
  let opening: Promise<Client> | undefined
  let now: Client | undefined

  async function open(): Promise<Client> {
    const own = (opening ??= openClient(options, role))
    try {
      const client = await own
      if (opening === own) {
        if (now !== client) onOpen?.(client)
        return (now = client)
      }
    } catch (error) {
      if (opening === own) opening = undefined
      throw error
    }
    throw new MillraceError('STOPPED', 'the Redis backend was stopped while it connected')
  }

  return {
    get now() {
      return now
    },
    open,
    async close() {
      const own = opening
      opening = now = undefined
      const client = await own?.catch(noop)
      if (client !== undefined) await quitClient(client)
    },
  }
}

function mastersOf(client: Client): readonly RedisNode[] {
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

function noop(): undefined {}
