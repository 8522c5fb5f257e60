// Starting the heartbeat thread, and the clock that threads share.
import { Worker } from 'node:worker_threads'
import type { BeatThreadData, FromBeatThread, ToBeatThread } from './beat-thread.ts'

export interface BeatThread {
  send(message: ToBeatThread): void
  stop(): Promise<void>
}

export interface BeatThreadEvents {
  readonly onMessage: (message: FromBeatThread, ageMs: number) => void
  /** The thread ended although nobody stopped it. */
  readonly onExit: (error: unknown) => void
}

/** How often the main loop shows that it turns. */
const TICK_MS = 100

/** Milliseconds on the monotonic clock that all threads of the process share. */
export function threadsMonoMs(): number {
  return Number(process.hrtime.bigint()) / 1_000_000
}

export function startBeatThread(data: Omit<BeatThreadData, 'tick'>, events: BeatThreadEvents): BeatThread {
  const tick = new SharedArrayBuffer(4)
  const counter = new Int32Array(tick)
  const ticking = setInterval(() => Atomics.add(counter, 0, 1), TICK_MS)
  ticking.unref()
  const file = import.meta.url.endsWith('.ts') ? './beat-thread.ts' : './beat-thread.js'
  const thread = new Worker(new URL(file, import.meta.url), { workerData: { ...data, tick } satisfies BeatThreadData })
  let stopping = false
  let failure: unknown
  const exited = new Promise<void>((resolve) => {
    thread.once('exit', () => {
      clearInterval(ticking)
      if (!stopping) events.onExit(failure)
      resolve()
    })
  })
  thread.on('error', (error) => {
    failure = error
  })
  thread.on('message', (message: FromBeatThread) => {
    const ageMs = message.kind === 'reply' ? Number(process.hrtime.bigint() - message.startedNs) / 1_000_000 : 0
    events.onMessage(message, ageMs)
  })
  return {
    send: (message) => thread.postMessage(message),
    async stop() {
      stopping = true
      thread.postMessage({ kind: 'stop' } satisfies ToBeatThread)
      const kill = setTimeout(() => void thread.terminate(), 1_000)
      kill.unref()
      await exited
      clearTimeout(kill)
    },
  }
}
