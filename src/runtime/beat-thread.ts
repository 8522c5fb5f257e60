// The entry of the heartbeat thread: beats on its own timer over its own connection, so a handler that
// blocks the main loop does not lose its jobs. It decides nothing; every reply goes to the main thread.
import { parentPort, workerData } from 'node:worker_threads'

/** The fields the thread itself fills in; the rest of a beat passes through untouched. */
export interface BeatState {
  readonly running: number
  readonly commandsSeen: number
  readonly blockedMs: number
}

export interface BeatThreadData {
  /** A module whose `createBeat(options)` yields a beat over a connection of this thread. */
  readonly module: string
  readonly options: unknown
  readonly worker: string
  readonly periodMs: number
  readonly timeoutMs: number
  /** Int32: the main loop counts up here as long as it turns. */
  readonly tick: SharedArrayBuffer
}

export interface BeatConnection {
  beat(request: BeatState & { readonly id: string }): Promise<unknown>
  /** It may find out something between two beats that should not wait for the next. */
  onUrgent?(beatNow: () => void): void
  close(): Promise<void>
}

/** From the main thread: what the next beat says, or that it should come at once. */
export type ToBeatThread =
  | { readonly kind: 'state'; readonly running: number; readonly commandsSeen: number }
  | { readonly kind: 'now' }
  | { readonly kind: 'stop' }

/** To the main thread. `startedNs` is on the monotonic clock that all threads of a process share. */
export type FromBeatThread =
  | { readonly kind: 'reply'; readonly startedNs: bigint; readonly reply: unknown }
  | { readonly kind: 'failed'; readonly message: string }

async function main(port: NonNullable<typeof parentPort>, data: BeatThreadData): Promise<void> {
  const { createBeat } = (await import(data.module)) as {
    createBeat: (options: unknown) => Promise<BeatConnection>
  }
  const connection = await createBeat(data.options)
  const tick = new Int32Array(data.tick)
  let state = { running: 0, commandsSeen: 0 }
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let lastTick = Atomics.load(tick, 0)
  let lastTurnNs = process.hrtime.bigint()

  /** How long the main loop has not turned. */
  function blockedMs(): number {
    const now = Atomics.load(tick, 0)
    const nowNs = process.hrtime.bigint()
    if (now !== lastTick) {
      lastTick = now
      lastTurnNs = nowNs
    }
    return Number((nowNs - lastTurnNs) / 1_000_000n)
  }

  async function pass(): Promise<void> {
    const startedNs = process.hrtime.bigint()
    const timeout = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error(`no answer within ${data.timeoutMs} ms`)), data.timeoutMs).unref()
    })
    try {
      const request = { id: data.worker, ...state, blockedMs: blockedMs() }
      const reply = await Promise.race([connection.beat(request), timeout])
      port.postMessage({ kind: 'reply', startedNs, reply } satisfies FromBeatThread)
      schedule(data.periodMs)
    } catch (error) {
      port.postMessage({ kind: 'failed', message: String(error) } satisfies FromBeatThread)
      schedule(Math.min(data.periodMs, 250))
    }
  }

  function schedule(delayMs: number): void {
    if (stopped) return
    clearTimeout(timer)
    timer = setTimeout(() => void pass(), delayMs)
  }

  port.on('message', (message: ToBeatThread) => {
    if (message.kind === 'state') state = { running: message.running, commandsSeen: message.commandsSeen }
    else if (message.kind === 'now') schedule(0)
    else {
      stopped = true
      clearTimeout(timer)
      void connection.close().finally(() => port.close())
    }
  })
  connection.onUrgent?.(() => schedule(0))
  await pass()
}

if (parentPort !== null) await main(parentPort, workerData as BeatThreadData) // set by createBeatThread
