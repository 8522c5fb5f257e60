// A store call with an end: a reply that does not come in time is an unknown outcome, and unknown is an
// answer that callers handle.
import { MillraceError } from '../core/errors.ts'
import type { Clock } from './clock.ts'
import type { CallWatch } from './probe.ts'

export function bounded<Value>(
  clock: Clock,
  timeoutMs: number,
  what: string,
  call: Promise<Value>,
  watch?: CallWatch,
): Promise<Value> {
  const startMs = watch === undefined ? 0 : clock.monoMs()
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = clock.timer(timeoutMs, () => {
      isLate = true
      const message = `${what} got no answer within ${timeoutMs} ms; it may or may not have taken effect`
      const error = new MillraceError('STORE_TIMEOUT', message, { retryable: true })
      watch?.(what, timeoutMs, error)
      reject(error)
    })
    call.then(
      (value) => {
        timer.cancel()
        if (!isLate) watch?.(what, clock.monoMs() - startMs)
        resolve(value)
      },
      (error: unknown) => {
        timer.cancel()
        if (!isLate) watch?.(what, clock.monoMs() - startMs, error ?? 'unknown')
        // oxlint-disable-next-line prefer-promise-reject-errors -- passed on unchanged
        reject(error)
      },
    )
  })
}
