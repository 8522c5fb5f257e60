// The only door to time. `nowMs` is the wall clock (shown, never waited on); `monoMs` never jumps and is
// what every wait and every trust decision uses.

export interface Timer {
  readonly cancel: () => void
}

export interface Clock {
  nowMs(): number
  monoMs(): number
  /** Runs `fire` once after `delayMs`. A waiting timer does not keep the process alive unless asked to. */
  timer(delayMs: number, fire: () => void, options?: { readonly keepAlive?: boolean }): Timer
  /** Lets input, timers and other work of the process go first. */
  breathe(): Promise<void>
}

// Taken once, so that a test that fakes the timers of its own code does not stop ours.
const { setTimeout, clearTimeout, setImmediate } = globalThis

/** Longest delay of a Node timer; longer waits are cut into pieces by whoever waits. */
const TIMER_MAX_MS = 2_147_483_647

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monoMs: () => performance.now(),
  timer(delayMs, fire, options) {
    const handle = setTimeout(fire, Math.min(Math.max(delayMs, 0), TIMER_MAX_MS))
    if (!options?.keepAlive) handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  breathe: () => new Promise((resolve) => setImmediate(resolve)),
}

/** Resolves after the delay, or at once when the signal aborts; never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.timer(delayMs, done, { keepAlive: true })
    signal?.addEventListener('abort', done, { once: true })
  })
}
