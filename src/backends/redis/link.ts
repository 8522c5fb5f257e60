// What the backends need of a Redis client, and no more: scripts, commands, messages. One library stands behind it
// (ioredis-link.ts); nothing else in Millrace names that library.
//
// Nothing is ever sent twice: a call whose connection breaks fails with an error, and whether it took effect is
// unknown. While there is no connection calls fail at once instead of waiting in a line.
import type { Script } from './script.ts'

export type RedisValue = string | number | Buffer

export interface RedisLink {
  /** True where keys are spread over nodes: all keys of one call share a hash tag there. */
  readonly isCluster: boolean
  /** Whether a call could be sent now. */
  readonly isConnected: boolean
  /** Resolves with the first working connection, or fails with a typed error. */
  connect(): Promise<void>
  /** Lets calls under way end, at most a moment. Idempotent. */
  close(): Promise<void>
  /** Texts come back as strings. */
  run(script: Script, keys: readonly string[], args: readonly RedisValue[]): Promise<unknown>
  /** The same with texts as bytes, for replies that are not all UTF-8. */
  runBinary(script: Script, keys: readonly string[], args: readonly RedisValue[]): Promise<unknown>
  /** On Cluster the node of the key, which is the first argument. */
  command(name: string, ...args: readonly RedisValue[]): Promise<unknown>
  /** After a connection for calls was lost and made again. Answers how to stop. */
  onBack(listener: () => void): () => void
  /** On every master, one after the other: INFO, SCAN, CONFIG GET. One master without Cluster. */
  onMasters<Value>(ask: (node: RedisNode) => Promise<Value>): Promise<readonly Value[]>
  /**
   * Messages of this channel, also after the connection came back; `onBack` then says that some may be lost. One
   * subscriber per channel: what is answered ends the subscription.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onBack: () => void): Promise<() => void>
}

export interface RedisNode {
  /** host:port, for messages. */
  readonly name: string
  command(name: string, ...args: readonly RedisValue[]): Promise<unknown>
}

/** Where Redis is: one of `url`, `cluster` and `sentinel`. */
export interface RedisServer {
  /** `redis://user:password@host:port/db`, or `rediss://` for TLS. */
  readonly url?: string
  /** Some nodes of a Cluster, as URLs; the others are found. */
  readonly cluster?: readonly string[]
  /** The name of the primary and the URLs of its sentinels. */
  readonly sentinel?: {
    readonly name: string
    readonly urls: readonly string[]
    /** Of the sentinels themselves. */
    readonly password?: string
  }
  /** Of the servers, where the URL does not say it. */
  readonly username?: string
  readonly password?: string
  /** With Sentinel. Default 0. */
  readonly db?: number
  /** What a `rediss://` URL cannot say; texts in PEM form. */
  readonly tls?: RedisTls
}

export interface RedisTls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}
