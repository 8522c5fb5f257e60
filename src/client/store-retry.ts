// Lost replies: a call whose fate is unknown is repeated as it was. Only calls that the backend contract
// declares repeatable (same ids, guarded transitions, compare-and-set that is read back) come here.
import { isMillraceError } from '../core/errors.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'

const TRIES_MAX = 3
const BACKOFF_MS = 50

export function isRetryable(error: unknown): boolean {
  return (
    isMillraceError(error) && (error.retryable || error.code === 'STORE_TIMEOUT' || error.code === 'STORE_UNAVAILABLE')
  )
}

/** `call` is told which try it is, from 1. The last error is thrown. */
export async function retryStore<Reply>(
  runtime: Pick<Runtime, 'clock' | 'random'>,
  call: (tryNo: number) => Promise<Reply>,
): Promise<Reply> {
  for (let tryNo = 1; ; tryNo++) {
    try {
      return await call(tryNo)
    } catch (error) {
      if (tryNo >= TRIES_MAX || !isRetryable(error)) throw error
      const ceilingMs = BACKOFF_MS * 4 ** (tryNo - 1)
      await sleep(runtime.clock, ceilingMs * (0.5 + runtime.random() / 2))
    }
  }
}
