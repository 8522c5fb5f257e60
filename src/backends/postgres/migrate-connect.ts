// The connections of a migrator, with a clear error when there is none.
import { Client } from 'pg'
import type { ClientBase } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import { storeError } from './pg-errors.ts'
import { endClient } from './end-client.ts'

const CONNECT_TIMEOUT_MS = 10_000
const APPLICATION_NAME = 'millrace migrate'

export interface Connections {
  first(): Promise<ClientBase>
  /** Undefined when a single connection was given. */
  readonly openSecond: (() => Promise<ClientBase>) | undefined
  close(): Promise<void>
}

export interface ConnectionsOptions {
  readonly url?: string
  readonly client?: ClientBase
  readonly connectTimeoutMs?: number
}

export function openConnections({
  url,
  client,
  connectTimeoutMs = CONNECT_TIMEOUT_MS,
}: ConnectionsOptions): Connections {
  if (client !== undefined) {
    return { first: () => Promise.resolve(client), openSecond: undefined, close: () => Promise.resolve() }
  }
  if (url === undefined) throw new MillraceError('INVALID_OPTION', 'a migrator needs a url or a client')
  const open = new Map<string, Promise<Client>>()
  const take = (name: string): Promise<Client> => {
    const known = open.get(name)
    if (known !== undefined) return known
    // A connection that broke or never came to be is opened anew by the next call.
    const forget = (): boolean => open.delete(name)
    const opened = connect({ url, applicationName: APPLICATION_NAME, timeoutMs: connectTimeoutMs, onLost: forget })
    open.set(name, opened)
    opened.catch(forget)
    return opened
  }
  return {
    first: () => take('first'),
    openSecond: () => take('second'),
    close: async () => {
      const clients = [...open.values()]
      open.clear()
      await Promise.allSettled(clients.map(async (client) => endClient(await client)))
    },
  }
}

export interface ConnectOptions {
  readonly url: string
  readonly applicationName: string
  readonly timeoutMs: number
  /** A connection that breaks while nobody waits for an answer; without a listener Node would end the process. */
  readonly onLost: (error: Error) => void
}

export async function connect({ url, applicationName, timeoutMs, onLost }: ConnectOptions): Promise<Client> {
  const client = newClient(url, applicationName, timeoutMs)
  client.on('error', onLost)
  try {
    await client.connect()
    return client
  } catch (error) {
    await endClient(client)
    throw storeError(error, `connecting to PostgreSQL at ${placeOf(client)}`)
  }
}

/** `127.0.0.1:5432/app as alice`: where a connection goes, without its password. */
export function placeOf({ host, port, database, user }: Client): string {
  const place = host.startsWith('/') ? `${host} port ${port}, database ${database}` : `${host}:${port}/${database}`
  return `${place} as ${user}`
}

function newClient(url: string, applicationName: string, timeoutMs: number): Client {
  try {
    return new Client({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: timeoutMs,
      keepAlive: true,
    })
  } catch {
    // Without the cause: it may quote the url, and the url may hold a password.
    throw new MillraceError('INVALID_OPTION', 'url is not an address like postgres://user@host:5432/database', {
      details: { option: 'url' },
    })
  }
}
