// What Redis, its client and the network say, as errors of Millrace: what failed, on what, and what to do.
import { MillraceError } from '../../core/errors.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { withoutPasswords } from '../../core/secrets.ts'

interface Meaning {
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly says: string
}

/** Every error of a call to Redis; `what` names the script or the command. */
export function redisError(error: unknown, what: string): MillraceError {
  if (error instanceof MillraceError) return error
  const said = error instanceof Error ? error.message : String(error)
  const { code, retryable, says } = meaningOf(error, said)
  const message = withoutPasswords(`${what}: ${says} (${said.slice(0, SAID_MAX)})`)
  return new MillraceError(code, message, { cause: withoutCommand(error), retryable })
}

/** The client hangs the whole call on its errors: payloads, and with a login the password. */
function withoutCommand(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return error
  const { lastNodeError } = error as { readonly lastNodeError?: unknown }
  if (lastNodeError !== undefined) withoutCommand(lastNodeError)
  if ('command' in error) Reflect.deleteProperty(error, 'command')
  return error
}

export function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

const SAID_MAX = 300

const unavailable = (says: string): Meaning => ({ code: 'STORE_UNAVAILABLE', retryable: true, says })
const refused = (says: string): Meaning => ({ code: 'STORE_REFUSED', retryable: false, says })
const timeout = (says: string): Meaning => ({ code: 'STORE_TIMEOUT', retryable: true, says })

const LOST = unavailable('the connection was lost; whether the call took effect is unknown')
const LOGIN = refused('Redis refused the login: check user and password of the url, and the ACL of the server')

/** By the first word of a reply of the server. */
const REPLIES: Readonly<Record<string, Meaning>> = {
  OOM: unavailable(
    'Redis is out of memory: raise maxmemory or shorten what is kept; maxmemory-policy must stay noeviction',
  ),
  LOADING: unavailable('Redis is loading its data'),
  MASTERDOWN: unavailable('the replica has lost its primary'),
  READONLY: unavailable('this Redis is a replica: connect to the primary, or through Sentinel'),
  CLUSTERDOWN: unavailable('the Redis Cluster has no owner for these keys'),
  TRYAGAIN: unavailable('the Redis Cluster is moving these keys'),
  BUSY: timeout('Redis is busy with a script of somebody'),
  MISCONF: unavailable('Redis cannot write to its disk and takes no writes'),
  NOREPLICAS: unavailable('Redis has too few replicas in contact and takes no writes'),
  NOAUTH: LOGIN,
  WRONGPASS: LOGIN,
  NOPERM: refused('the user of Redis lacks a permission: docs/redis.md lists the commands and keys'),
  CROSSSLOT: refused('keys of one call are on different nodes of a Cluster: name the nodes under `cluster`'),
  MOVED: refused('this Redis is part of a Cluster: name its nodes under `cluster`'),
}

const NETWORK: Readonly<Record<string, Meaning>> = {
  ECONNREFUSED: unavailable('nothing listens there: is Redis running, and are host and port right?'),
  ENOTFOUND: unavailable('the host is not known'),
  EAI_AGAIN: unavailable('the name of the host could not be looked up now'),
  ETIMEDOUT: unavailable('the connection timed out'),
  ECONNRESET: LOST,
  EPIPE: LOST,
}

function meaningOf(error: unknown, said: string): Meaning {
  const code = errorCode(error)
  const network = code === undefined ? undefined : NETWORK[code]
  if (network !== undefined) return network
  // Errors of scripts begin with `ERR` and name the reply in the middle.
  for (const word of said.split(/[\s:'-]+/, 12)) {
    const meaning = REPLIES[word]
    if (meaning !== undefined) return meaning
  }
  if (/certificate|self.signed|TLS|SSL/i.test(said)) return refused('the TLS connection was refused: check `tls`')
  if (/writeable/i.test(said)) return unavailable('there is no connection to Redis now')
  if (/closed|max retries|All sentinels|Failed to refresh|ended|Socket timeout/i.test(said)) return LOST
  if (/timed? ?out/i.test(said)) return timeout('Redis did not answer in time')
  return refused('Redis refused the call')
}

function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, lastNodeError } = error as { readonly code?: unknown; readonly lastNodeError?: unknown }
  if (typeof code === 'string') return code
  return lastNodeError === undefined ? undefined : errorCode(lastNodeError)
}
