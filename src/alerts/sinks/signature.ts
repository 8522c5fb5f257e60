// The signature of a webhook: HMAC-SHA256 over the time and the body, so that a receiver knows who sent it, that nothing was
// changed, and that it is not an old one played again. Both sides are here: `verifyWebhook` is for receivers.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { systemClock } from '../../runtime/clock.ts'

export const TIMESTAMP_HEADER = 'millrace-timestamp'
export const SIGNATURE_HEADER = 'millrace-signature'
export const DEDUPE_HEADER = 'millrace-dedupe-key'

/** What is older, or that much in the future, is refused. */
const TOLERANCE_MS = 5 * 60_000

/** `v1=` and the code in hex over `<seconds>.<body>`. */
export function signWebhook(secret: string, seconds: number, body: string): string {
  return `v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`
}

export interface VerifyOptions {
  /** As it came, before anybody parsed it. */
  readonly body: string | Uint8Array
  /** Of the request; the names in lower case, as Node has them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Several while one is replaced by another. */
  readonly secret: string | readonly string[]
  /** Default 5 minutes. */
  readonly toleranceMs?: number
  /** Default: now. */
  readonly nowMs?: number
}

/** `ok`, or why the request must not be believed. */
export function verifyWebhook(options: VerifyOptions): 'ok' | 'unsigned' | 'expired' | 'forged' {
  const { body, headers, secret, toleranceMs = TOLERANCE_MS, nowMs = systemClock.nowMs() } = options
  const [time, signature] = [headers[TIMESTAMP_HEADER], headers[SIGNATURE_HEADER]]
  if (typeof time !== 'string' || typeof signature !== 'string' || !/^\d{1,12}$/.test(time)) return 'unsigned'
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
  const secrets = typeof secret === 'string' ? [secret] : secret
  const isOurs = secrets.some((one) => isSame(signWebhook(one, Number(time), text), signature))
  if (!isOurs) return 'forged'
  return Math.abs(nowMs - Number(time) * 1_000) > toleranceMs ? 'expired' : 'ok'
}

function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
