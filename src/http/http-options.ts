// Where the HTTP port is: checked before anything listens.
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, invalidOption } from '../core/names.ts'

export interface HttpOptions {
  /** 0: any free one. */
  readonly port: number
  /** Default 127.0.0.1. Another one, such as 0.0.0.0, opens the port to others. */
  readonly host?: string
  /** Whoever asks for more than /live and /ready must send it as `Authorization: Bearer <token>`. */
  readonly token?: string
}

export const HTTP_HOST = '127.0.0.1'

export function checkHttpOptions(options: HttpOptions): Required<Omit<HttpOptions, 'token'>> & { token?: string } {
  checkKnownOptions(options, ['port', 'host', 'token'], 'http')
  const { host = HTTP_HOST, token } = options
  const port = checkInteger(options.port, 'http.port', 0, 65_535)
  if (typeof host !== 'string' || !/^[\w.:-]{1,255}$/.test(host)) {
    throw invalidOption('http.host', host, 'a host name or an address without a port, such as 0.0.0.0')
  }
  if (token === undefined) return { port, host }
  if (typeof token !== 'string' || token.length < LIMITS.httpTokenCharsMin || !/^[\x21-\x7e]*$/.test(token)) {
    // Never shown, not even a wrong one.
    throw invalidOption('http.token', '***', `at least ${LIMITS.httpTokenCharsMin} printable characters without spaces`)
  }
  return { port, host, token }
}
