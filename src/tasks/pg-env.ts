// How a program of PostgreSQL is told where the server is: by its environment alone. A command line is seen by everybody on the
// machine, so neither the password nor anything else of the URL is on it. The target is what our own connection would use.
import { Client } from 'pg'
import { MillraceError } from '../core/errors.ts'

export interface PgTarget {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** PGHOST and its like; with the password. */
  readonly env: Readonly<Record<string, string>>
  readonly warnings: readonly string[]
}

const CONNECT_TIMEOUT_S = 10
/** From here on libpq can check certificates against those that the system trusts. */
const SYSTEM_ROOTS_SINCE = 16

export function pgTarget(url: string, toolMajor: number): PgTarget {
  const { host, port, database, user, password } = clientOf(url)
  const { env: tls, warnings } = tlsOf(parametersOf(url), toolMajor)
  const name = database ?? user ?? ''
  const env = {
    PGHOST: host,
    PGPORT: String(port),
    PGDATABASE: name,
    ...(user !== undefined && { PGUSER: user }),
    ...(typeof password === 'string' && password !== '' && { PGPASSWORD: password }),
    PGAPPNAME: 'millrace backup',
    PGCONNECT_TIMEOUT: String(CONNECT_TIMEOUT_S),
    ...tls,
  }
  return { host, port, database: name, user: user ?? '', env, warnings }
}

export function clientOf(url: string): Client {
  try {
    return new Client({
      connectionString: url,
      application_name: 'millrace backup',
      connectionTimeoutMillis: CONNECT_TIMEOUT_S * 1000,
    })
  } catch {
    // Without the cause: it may quote the url, and the url may hold a password.
    throw new MillraceError('INVALID_OPTION', 'the address of the database is none like postgres://user@host/database')
  }
}

function parametersOf(url: string): URLSearchParams {
  const at = url.indexOf('?')
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
}

/**
 * Our own connection checks the certificate wherever it uses TLS, unless it is told not to. libpq does so only when it is
 * given roots, or is new enough to use those of the system.
 */
function tlsOf(asked: URLSearchParams, toolMajor: number) {
  const mode = asked.get('sslmode') ?? (/^(?:true|1)$/.test(asked.get('ssl') ?? '') ? 'verify-full' : undefined)
  const files = [
    ['PGSSLROOTCERT', 'sslrootcert'],
    ['PGSSLCERT', 'sslcert'],
    ['PGSSLKEY', 'sslkey'],
  ].flatMap(([name = '', option = '']) => {
    const value = asked.get(option)
    return value === null ? [] : [[name, value] as const]
  })
  const env: Record<string, string> = Object.fromEntries(files)
  const warnings: string[] = []
  if (mode === undefined) return { env, warnings }
  if (mode === 'disable' || mode === 'no-verify') env['PGSSLMODE'] = mode === 'disable' ? 'disable' : 'require'
  else if (asked.get('uselibpqcompat') === 'true') env['PGSSLMODE'] = mode
  else if (env['PGSSLROOTCERT'] !== undefined) env['PGSSLMODE'] = 'verify-full'
  else if (toolMajor >= SYSTEM_ROOTS_SINCE) {
    env['PGSSLMODE'] = 'verify-full'
    env['PGSSLROOTCERT'] = 'system'
  } else {
    env['PGSSLMODE'] = mode
    if (!mode.startsWith('verify')) {
      warnings.push(
        `pg_dump ${toolMajor} encrypted the connection and did not check the certificate: name its root with sslrootcert in the URL`,
      )
    }
  }
  return { env, warnings }
}
