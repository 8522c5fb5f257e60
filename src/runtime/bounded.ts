// A store call with an end: a reply that does not come in time is an unknown outcome, and unknown is an
// answer that callers handle.
import { MillraceError } from '../core/errors.ts'
import type { Clock } from './clock.ts'

export function bounded<Value>(clock: Clock, timeoutMs: number, what: string, call: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(timeoutMs, () => {
      const message = `${what} got no answer within ${timeoutMs} ms; it may or may not have taken effect`
      reject(new MillraceError('STORE_TIMEOUT', message, { retryable: true }))
    })
    call.then(
      (value) => {
        timer.cancel()
        resolve(value)
      },
      (error: unknown) => {
        timer.cancel()
        // oxlint-disable-next-line prefer-promise-reject-errors -- passed on unchanged
        reject(error)
      },
    )
  })
}
