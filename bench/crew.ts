// The workers of a measurement. A system with a database works in processes of its own, as it would in
// production; a system in memory can only work where its jobs are, in this process.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { OpenSystem, Place, RunningWorker, WorkOptions } from './system.ts'

export interface Crew {
  readonly processes: number
  /** Whether it works in this process, so that its processor time is ours. */
  readonly isLocal: boolean
  /** All workers begin; resolves when all have. */
  start(): Promise<void>
  /** Workers stop taking jobs and finish what they have; they can be started again. */
  stop(): Promise<void>
  /** Resolves when handlers were started so many times in all; false when the time was over before. */
  handled(count: number, withinMs: number): Promise<boolean>
  /** Processor time of each worker process so far. */
  cpuUs(): Promise<readonly number[]>
  /** When each job was started, by `seq`, on the clock of `nowMs`; asked once, at the end. */
  starts(): Promise<ReadonlyMap<number, number>>
  close(): Promise<void>
}

/** What a worker process is told. */
export type Call =
  | { readonly kind: 'open'; readonly system: string; readonly place: Place; readonly options: CrewOptions }
  | { readonly kind: 'start' | 'stop' | 'cpu' | 'starts' }

/** What it says: answers in the order of the calls, and now and then how many handlers it has started. */
export type Answer =
  | { readonly kind: 'handled'; readonly count: number }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'error'; readonly message: string }

export interface CrewOptions {
  readonly concurrency: number
  /** Default 1. */
  readonly processes?: number
  /** Whether to remember when each job started. */
  readonly isTimed?: boolean
  /** How long a handler waits after its start; default: it does not. */
  readonly handlerMs?: number
}

/** Milliseconds on the monotonic clock of the machine, which all processes share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Counts handler starts and, if asked, remembers when they were. */
export class Tally {
  readonly starts: (readonly [seq: number, atMs: number])[] = []
  readonly onStart: WorkOptions['onStart']
  count = 0

  constructor({ isTimed = false, handlerMs }: Pick<CrewOptions, 'isTimed' | 'handlerMs'>) {
    const note = isTimed
      ? (seq: number): void => {
          this.starts.push([seq, nowMs()])
          this.count += 1
        }
      : (): void => {
          this.count += 1
        }
    this.onStart =
      handlerMs === undefined
        ? note
        : (seq) => {
            note(seq)
            return pause(handlerMs)
          }
  }
}

/** Looks at a number that grows until it is large enough. */
export async function reached(read: () => number, count: number, withinMs: number): Promise<boolean> {
  const untilMs = nowMs() + withinMs
  while (read() < count) {
    if (nowMs() >= untilMs) return false
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return true
}

export function localCrew(system: OpenSystem, options: CrewOptions): Crew {
  const tally = new Tally(options)
  let worker: RunningWorker | undefined
  return {
    isLocal: true,
    processes: 1,
    async start() {
      worker = await system.work({ concurrency: options.concurrency, onStart: tally.onStart })
    },
    async stop() {
      await worker?.stop()
    },
    handled: (count, withinMs) => reached(() => tally.count, count, withinMs),
    cpuUs: async () => [],
    starts: async () => new Map(tally.starts),
    close: async () => undefined,
  }
}

/** Resolves when all processes have opened the system and wait for the start. */
export async function forkedCrew(system: string, place: Place, options: CrewOptions): Promise<Crew> {
  const hands = Array.from({ length: options.processes ?? 1 }, () => new Hand())
  const all = <Value>(call: Call): Promise<readonly Value[]> => Promise.all(hands.map((hand) => hand.call<Value>(call)))
  const handledCount = (): number => hands.reduce((sum, { handled }) => sum + handled, 0)
  await all({ kind: 'open', system, place, options })
  return {
    isLocal: false,
    processes: hands.length,
    async start() {
      await all({ kind: 'start' })
    },
    async stop() {
      await all({ kind: 'stop' })
    },
    handled: (count, withinMs) => reached(handledCount, count, withinMs),
    cpuUs: () => all<number>({ kind: 'cpu' }),
    starts: async () => new Map((await all<readonly (readonly [number, number])[]>({ kind: 'starts' })).flat()),
    async close() {
      await Promise.all(hands.map((hand) => hand.close()))
    },
  }
}

const CLOSE_TIMEOUT_MS = 10_000

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** One worker process. */
class Hand {
  readonly #child: ChildProcess
  readonly #waiting: Waiting[] = []
  handled = 0

  constructor() {
    // Compiled, beside this file.
    this.#child = fork(fileURLToPath(new URL('./crew-process.js', import.meta.url)))
    this.#child.on('message', (answer: Answer) => this.#hear(answer))
    this.#child.on('exit', (code, signal) => this.#fail(new Error(`a worker process ended (${signal ?? code})`)))
    this.#child.on('error', (error) => this.#fail(error))
  }

  /** Answers come in the order of the calls. */
  call<Value>(call: Call): Promise<Value> {
    return new Promise((resolve, reject) => {
      // What a call answers is known to its caller.
      this.#waiting.push({ resolve: resolve as (value: unknown) => void, reject })
      this.#child.send(call)
    })
  }

  async close(): Promise<void> {
    if (!this.#child.connected) return
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_TIMEOUT_MS)
    this.#child.disconnect()
    await gone
    clearTimeout(timer)
  }

  #hear(answer: Answer): void {
    switch (answer.kind) {
      case 'handled':
        this.handled = answer.count
        return
      case 'value':
        this.#waiting.shift()?.resolve(answer.value)
        return
      case 'error':
        this.#waiting.shift()?.reject(new Error(answer.message))
        return
    }
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }
}
