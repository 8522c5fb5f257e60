// Who may ask, and what every answer says to browsers. Nobody's web page may read this port through a name that it has made
// to point at the loopback address, and a token is compared in a time that tells nothing of it.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { errorReply } from './route.ts'
import type { HttpReply } from './route.ts'

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

export interface GuardOptions {
  /** The address that the server listens on. */
  readonly host: string
  readonly token?: string | undefined
}

/** Answers why not, or nothing. */
export type Guard = (headers: IncomingHttpHeaders, isOpen: boolean) => HttpReply | undefined

export function createGuard({ host, token }: GuardOptions): Guard {
  const wanted = token === undefined ? undefined : digestOf(token)
  return (headers, isOpen) => {
    if (isLoopback(host) && !isLoopback(hostNameOf(headers.host))) {
      return errorReply(421, 'WRONG_HOST', 'this port is for its own machine: ask it as localhost or 127.0.0.1')
    }
    if (wanted === undefined || isOpen) return undefined
    if (timingSafeEqual(digestOf(tokenOf(headers.authorization)), wanted)) return undefined
    const reply = errorReply(401, 'UNAUTHORIZED', 'send the header Authorization: Bearer <token>')
    return { ...reply, headers: { 'www-authenticate': 'Bearer' } }
  }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}

/** A request without a Host, which HTTP/1.0 allows, is of no browser. */
function hostNameOf(host: string | undefined): string {
  if (host === undefined) return 'localhost'
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(host)
  return (bracketed?.[1] ?? host.replace(/:\d+$/, '')).toLowerCase()
}

/** The name of the scheme may be written in any case. */
function tokenOf(authorization = ''): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ''
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
