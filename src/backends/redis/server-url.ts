// Where Redis is, from what the user wrote to what the client takes.
import { invalidOption } from '../../core/names.ts'
import { withoutPasswords } from '../../core/secrets.ts'
import type { RedisServer, RedisTls } from './link.ts'

interface HostPort {
  readonly host: string
  readonly port: number
}

/** In the words of ioredis. */
export interface ServerSettings {
  host?: string
  port?: number
  username?: string
  password?: string
  db?: number
  tls?: RedisTls
  name?: string
  sentinels?: HostPort[]
  sentinelPassword?: string
}

export interface ServerOptions {
  readonly server: ServerSettings
  /** With Cluster: where to ask for the others. */
  readonly nodes?: readonly HostPort[]
}

const PORT = 6379
const SENTINEL_PORT = 26_379

export function serverOf(options: RedisServer): ServerOptions {
  const { url, cluster, sentinel } = options
  const named = [url, cluster, sentinel].filter((value) => value !== undefined)
  if (named.length !== 1) throw invalidOption('redis', named.length, 'one of `url`, `cluster` and `sentinel`')
  if (url !== undefined) return { server: { ...common(options), ...fromUrl(url, options) } }
  if (cluster !== undefined) {
    const parts = list('cluster', cluster).map((one) => fromUrl(one, options))
    const { host: _, port: __, ...first } = parts[0]!
    return {
      server: { ...common(options), ...first },
      nodes: parts.map(({ host = '127.0.0.1', port = PORT }) => ({ host, port })),
    }
  }
  const { name, urls, password } = sentinel!
  if (typeof name !== 'string' || name === '') throw invalidOption('sentinel.name', name, 'the name of the primary')
  const sentinels = list('sentinel.urls', urls).map((one) => {
    const { host = '127.0.0.1', port = SENTINEL_PORT } = fromUrl(one, {}, SENTINEL_PORT)
    return { host, port }
  })
  return {
    server: {
      ...common(options),
      name,
      sentinels,
      ...(password !== undefined && { sentinelPassword: password }),
      ...(options.db !== undefined && { db: options.db }),
    },
  }
}

function common({ username, password, tls }: RedisServer): ServerSettings {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls: { ...tls } }),
  }
}

function fromUrl(text: string, { tls }: RedisServer, defaultPort = PORT): ServerSettings {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw invalidOption('redis', withoutPasswords(String(text)), "'redis://user:password@host:6379/0'")
  }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw invalidOption('redis', `${url.protocol}//…`, "'redis://…', or 'rediss://…' for TLS")
  }
  const db = url.pathname.replace(/^\//, '')
  if (!/^\d*$/.test(db)) throw invalidOption('redis', `/${db}`, 'the number of a database after the host')
  return {
    host: url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
    port: url.port === '' ? defaultPort : Number(url.port),
    ...(url.username !== '' && { username: decodeURIComponent(url.username) }),
    ...(url.password !== '' && { password: decodeURIComponent(url.password) }),
    ...(db !== '' && { db: Number(db) }),
    ...(url.protocol === 'rediss:' && { tls: { ...tls } }),
  }
}

function list(option: string, urls: readonly string[]): readonly string[] {
  if (Array.isArray(urls) && urls.length > 0) return urls
  throw invalidOption(option, urls, 'a list of redis:// URLs')
}
