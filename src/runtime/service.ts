// Every long-lived part has the same two verbs: start resolves when it works, stop when nothing of it is
// left running. Both may be called twice. Background loops report an error, back off with jitter, go on.
import type { Timer } from './clock.ts'
import type { Runtime } from './runtime.ts'

export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

export interface LoopOptions {
  readonly name: string
  readonly runtime: Runtime
  /** One pass; answers the wait before the next one. */
  readonly pass: () => Promise<number>
  /** Wait after a failed pass, doubled up to the maximum, with jitter. */
  readonly backoffMinMs?: number
  readonly backoffMaxMs?: number
  /** Does this loop alone keep the process from ending? Default false. */
  readonly keepAlive?: boolean
}

export interface Loop extends Service {
  /** Run the next pass now. A hint during a pass runs another one right after it. */
  wake(): void
}

/** A pass, a wait, a pass ... Passes never overlap; a failing pass is logged and retried later. */
export function createLoop(options: LoopOptions): Loop {
  const { name, runtime, pass, backoffMinMs = 100, backoffMaxMs = 10_000, keepAlive = false } = options
  let state: 'idle' | 'running' | 'stopped' = 'idle'
  let timer: Timer | undefined
  let current: Promise<void> | undefined
  let woken = false
  let failures = 0

  async function run(): Promise<void> {
    woken = false
    let waitMs: number
    try {
      waitMs = await pass()
      failures = 0
    } catch (error) {
      failures += 1
      const ceiling = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(failures - 1, 16))
      waitMs = ceiling * (0.5 + runtime.random() / 2)
      runtime.logger.warn({ service: name, failures, waitMs, error }, `${name} failed a pass and will try again`)
    }
    current = undefined
    if (state === 'running') schedule(woken && failures === 0 ? 0 : waitMs)
  }

  function schedule(waitMs: number): void {
    timer?.cancel()
    const fire = (): void => {
      timer = undefined
      if (state === 'running' && current === undefined) current = run()
    }
    timer = runtime.clock.timer(waitMs, fire, { keepAlive })
  }

  return {
    start() {
      if (state === 'idle') {
        state = 'running'
        schedule(0)
      }
      return Promise.resolve()
    },
    async stop() {
      state = 'stopped'
      timer?.cancel()
      timer = undefined
      await current
    },
    wake() {
      woken = true
      if (state === 'running' && current === undefined && failures === 0) schedule(0)
    },
  }
}
