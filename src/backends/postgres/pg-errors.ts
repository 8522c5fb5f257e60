// What PostgreSQL, its driver and the network say, as errors of Millrace: what failed, on what, and what to
// do. Messages carry no password, and no `detail` of the server, which may quote rows.
import { MillraceError } from '../../core/errors.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { withoutPasswords } from '../../core/secrets.ts'

interface Meaning {
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly says: string
}

/** Every error of a call to PostgreSQL; `what` names the call (`jobs.claim`) or the place it went to. */
export function storeError(error: unknown, what: string): MillraceError {
  if (error instanceof MillraceError) return error
  const { code, retryable, says } = meaningOf(error)
  const message = withoutPasswords(`${what}: ${says}${saidByServer(error, says)}`)
  return new MillraceError(code, message, { cause: causeOf(error), retryable, details: detailsOf(error) })
}

/** The five characters by which PostgreSQL names an error; undefined for errors of the network and the driver. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = textField(error, 'code')
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !(code in NETWORK) ? code : undefined
}

const unavailable = (says: string): Meaning => ({ code: 'STORE_UNAVAILABLE', retryable: true, says })
const timeout = (says: string): Meaning => ({ code: 'STORE_TIMEOUT', retryable: true, says })
const refused = (says: string): Meaning => ({ code: 'STORE_REFUSED', retryable: false, says })
const conflict = (says: string): Meaning => ({ code: 'STORE_CONFLICT', retryable: true, says })
const tooOld = (says: string): Meaning => ({
  code: 'SCHEMA_TOO_OLD',
  retryable: false,
  says: `${says}: run \`millrace migrate up\``,
})

const LOST = unavailable('the connection was lost; whether the call took effect is unknown')
const LOGIN = refused('the server refused the login: check user and password of the url, and pg_hba.conf of the server')
const STOPPING = unavailable('the server is shutting down')
/** Both say it in the same words. */
const ENDED = unavailable('the server ended the connection: it is shutting down, or somebody terminated the session')
const TLS = refused('the TLS connection was refused: check sslmode and sslrootcert of the url')

const STATES: Readonly<Record<string, Meaning>> = {
  '28P01': refused('the password was refused: correct it in the url (PGPASSWORD is read when the url has none)'),
  '28000': LOGIN,
  '3D000': refused('the database does not exist: create it'),
  '53100': unavailable('disk full: the server cannot write until space is freed'),
  '53200': unavailable('the server is out of memory'),
  '53300': unavailable(
    'too many connections: lower the pools of the processes, raise max_connections, or put PgBouncer in front',
  ),
  '57P01': ENDED,
  '57P02': STOPPING,
  '57P03': unavailable('the server is starting up or in recovery'),
  '57P04': refused('the database was dropped'),
  '57P05': LOST,
  '25P03': unavailable('the server ended a transaction that stood idle too long, and its connection'),
  '25006': unavailable('this server is read-only: a standby? Connect to the primary'),
  '57014': timeout('the statement was cancelled, by statement_timeout or by an operator'),
  '25P04': timeout('the transaction was cancelled by transaction_timeout'),
  '55P03': timeout('a lock was not free in time'),
  '40001': conflict('two transactions got in the way of each other, and this one was rolled back'),
  '40P01': conflict('a deadlock was broken by rolling this transaction back'),
  '42P01': tooOld('a table is missing'),
  '3F000': tooOld('the schema is missing'),
  '42883': tooOld('a function is missing or has other arguments'),
  '42703': tooOld('a column is missing'),
  '42501': refused(
    'the user lacks a permission: connect as the owner of the schema, or grant what docs/roles.md lists',
  ),
  '26000': refused(
    'a prepared statement is gone: a pooler in transaction mode needs max_prepared_statements > 0 (PgBouncer 1.21)',
  ),
}

const CLASSES: Readonly<Record<string, Meaning>> = {
  '08': LOST,
  '53': unavailable('the server is short of a resource'),
  '58': unavailable('the server has trouble with its own files'),
}

const NETWORK: Readonly<Record<string, Meaning>> = {
  ECONNREFUSED: unavailable('nothing accepts connections there: is the server running, are host and port right?'),
  ENOENT: unavailable('no socket there: is the server running, is the directory right?'),
  ENOTFOUND: unavailable('the host name is unknown: check the host of the url'),
  EAI_AGAIN: unavailable('the host name could not be looked up'),
  EHOSTUNREACH: unavailable('the host cannot be reached'),
  ENETUNREACH: unavailable('the network cannot be reached'),
  ETIMEDOUT: unavailable('no answer from the host: check host, port and firewall'),
  ECONNRESET: LOST,
  ECONNABORTED: LOST,
  EPIPE: LOST,
  SELF_SIGNED_CERT_IN_CHAIN: TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: TLS,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TLS,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TLS,
  CERT_HAS_EXPIRED: TLS,
  ERR_TLS_CERT_ALTNAME_INVALID: TLS,
}

/** What pg and pg-pool raise without a code, by the words they use. */
const MESSAGES: readonly (readonly [RegExp, Meaning])[] = [
  [/cached plan must not change result type/, conflict('the schema changed under a prepared statement')],
  [
    /timeout exceeded when trying to connect|connection timeout|timeout expired/i,
    unavailable('no connection in time: the server does not answer, or all connections of the pool are in use'),
  ],
  [/query read timeout/i, timeout('no answer in time')],
  [/client password must be a string|no password/i, refused('the server wants a password and the url has none')],
  [/does not support SSL|sslmode|SSL connection/i, TLS],
  [/connection (?:error|terminated|ended)|not queryable|client was closed/i, LOST],
]

function meaningOf(error: unknown): Meaning {
  const code = textField(error, 'code') ?? ''
  const known =
    NETWORK[code] ?? STATES[code] ?? (sqlStateOf(error) === undefined ? undefined : CLASSES[code.slice(0, 2)])
  if (known !== undefined && code !== '3D000') return known
  const message = textField(error, 'message') ?? ''
  if (code === '3D000') return missingDatabase(message)
  const worded = MESSAGES.find(([words]) => words.test(message))
  if (worded !== undefined) return worded[1]
  if (/^E[A-Z]{3,}$/.test(code)) return unavailable(`the connection failed with ${code}`)
  return refused('the server refused the statement')
}

/** The name stands in quotes in every language of the server. */
function missingDatabase(message: string): Meaning {
  const name = /["'«»„“]([^"'«»“”]+)["'«»“”]/.exec(message)?.[1]
  return refused(`the database does not exist: \`create database "${name ?? '…'}"\`, or correct its name in the url`)
}

function saidByServer(error: unknown, says: string): string {
  const message = messageOf(error)
  return message === '' || says.includes(message) ? '' : ` (${message})`
}

/** The server quotes rows in `detail` of broken constraints and bad values; payloads do not belong into logs. */
function causeOf(error: unknown): unknown {
  if (!/^2[23]/.test(sqlStateOf(error) ?? '')) return error
  return Object.assign(new Error(messageOf(error)), { code: sqlStateOf(error) })
}

/** `invalid input syntax for type integer: "…"`: after the colon stands the value. */
function messageOf(error: unknown): string {
  const message = textField(error, 'message') ?? String(error)
  return sqlStateOf(error)?.startsWith('22') ? message.replace(/:[^]*$/, '') : message
}

function detailsOf(error: unknown): Readonly<Record<string, unknown>> {
  const code = textField(error, 'code')
  if (code === undefined) return {}
  return sqlStateOf(error) === undefined ? { code } : { sqlState: code }
}

function textField(error: unknown, field: string): string | undefined {
  if (typeof error !== 'object' || error === null || !(field in error)) return undefined
  const value: unknown = (error as Readonly<Record<string, unknown>>)[field]
  return typeof value === 'string' ? value : undefined
}
