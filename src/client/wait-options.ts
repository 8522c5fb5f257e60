// How long a caller is willing to wait: a time and a signal of his own, joined into one signal.
import type { Duration } from '../core/duration.ts'
import { formatDuration, parseDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import type { Runtime } from '../runtime/runtime.ts'

export interface WaitOptions {
  /** Default 1 hour, at most 24 days. The job goes on when the wait ends. */
  readonly timeout?: Duration
  readonly signal?: AbortSignal
}

const WAIT_DEFAULT_MS = 60 * 60_000
const WAIT_MAX_MS = 24 * 24 * 60 * 60_000

/** Runs `wait` with a signal that aborts with WAIT_TIMEOUT or with the reason of the caller's signal. */
export async function withinWait<Value>(
  runtime: Pick<Runtime, 'clock'>,
  options: WaitOptions,
  what: string,
  wait: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  checkKnownOptions(options, ['timeout', 'signal'], 'wait options')
  const timeoutMs = parseDuration(options.timeout ?? WAIT_DEFAULT_MS, 'timeout', { maxMs: WAIT_MAX_MS })
  const { signal } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption('signal', signal, 'an AbortSignal')
  const ending = new AbortController()
  const onAbort = (): void => ending.abort(signal?.reason)
  const timer = runtime.clock.timer(timeoutMs, () => {
    const message = `${what} did not end within ${formatDuration(timeoutMs)}; it goes on. Does a worker serve its queue?`
    ending.abort(new MillraceError('WAIT_TIMEOUT', message, { retryable: true, details: { timeoutMs } }))
  })
  if (signal?.aborted) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await wait(ending.signal)
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', onAbort)
  }
}
