// A supervisor whose processes are objects: what they are told is kept, and the test says what they do. On virtual time.
import { memory } from '../../src/index.ts'
import type { Backend, PoolConfig } from '../../src/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { LogFields, Logger } from '../../src/runtime/logger.ts'
import type { Exit, Launch, LaunchEvents } from '../../src/supervisor/launch.ts'
import type { ChildStats, ToChild } from '../../src/supervisor/messages.ts'
import { checkPools } from '../../src/supervisor/pool-options.ts'
import { Supervisor } from '../../src/supervisor/supervisor.ts'
import type { SupervisorParts } from '../../src/supervisor/supervisor.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export class FakeProcess {
  readonly label: string
  readonly pid: number
  readonly told: ToChild[] = []
  readonly signals: string[] = []
  readonly #events: LaunchEvents
  isGone = false

  constructor(label: string, pid: number, events: LaunchEvents) {
    this.label = label
    this.pid = pid
    this.#events = events
  }

  get workerId(): string {
    return `worker-${this.pid}`
  }

  /** Loaded, given its orders, and at work. */
  ready(queues?: readonly string[]): void {
    this.#events.onMessage({ kind: 'hello' })
    this.#events.onMessage({ kind: 'ready', workerIds: [this.workerId], ...(queues !== undefined && { queues }) })
  }

  stats(stats: Partial<ChildStats> = {}): void {
    const base = { rssBytes: 0, cpuPercent: 0, loopLagMs: 0, processed: 0, failed: 0, running: 0 }
    this.#events.onMessage({ kind: 'stats', stats: { workerIds: [this.workerId], ...base, ...stats } })
  }

  exit(exit: Partial<Exit> = {}): void {
    if (this.isGone) return
    this.isGone = true
    this.#events.onExit({ code: 0, signal: null, ...exit })
  }

  die(): void {
    this.exit({ code: null, signal: 'SIGKILL' })
  }

  get kinds(): readonly string[] {
    return this.told.map(({ kind }) => kind)
  }
}

export interface FakeWorld {
  readonly clock: VirtualClock
  readonly backend: Backend
  readonly supervisor: Supervisor
  /** All that were ever started. */
  readonly processes: readonly FakeProcess[]
  /** Those that are there. */
  readonly living: () => readonly FakeProcess[]
  /** Do those that are started become ready by themselves? */
  readonly launching: { isWilling: boolean }
  readonly lines: readonly { readonly level: string; readonly fields: LogFields; readonly message: string }[]
  /** Time passes and nothing happens in it: the supervisor was stopped, or its machine. */
  readonly suspend: (ms: number) => void
  /** Moves time while every process that works tells how it is. */
  readonly pass: (ms: number) => Promise<void>
}

export interface FakeOptions extends Partial<Pick<SupervisorParts, 'secret' | 'processesMax' | 'drainMs'>> {
  readonly pools?: Readonly<Record<string, PoolConfig>>
  /** Processes become ready by themselves. Default true. */
  readonly willing?: boolean
}

export async function fakeSupervisor(options: FakeOptions = {}): Promise<FakeWorld> {
  const {
    pools = { mail: { processes: { min: 2, max: 6 } } },
    willing = true,
    processesMax = 20,
    drainMs = 60_000,
  } = options
  const clock = new VirtualClock()
  const backend = memory({ clock })
  await backend.start()
  const processes: FakeProcess[] = []
  const lines: { level: string; fields: LogFields; message: string }[] = []
  const at = (level: string) => (fields: LogFields, message: string) => void lines.push({ level, fields, message })
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const launching = { isWilling: willing }
  const launch: Launch = (label, events) => {
    const process = new FakeProcess(label, 1_000 + processes.length, events)
    processes.push(process)
    if (launching.isWilling) clock.timer(100, () => !process.isGone && process.ready())
    return {
      pid: process.pid,
      send: (message) => void process.told.push(message),
      signal(name) {
        process.signals.push(name)
        if (name === 'SIGKILL') clock.timer(0, () => process.exit({ code: null, signal: name }))
      },
    }
  }
  let suspendedMs = 0
  const own: Clock = {
    nowMs: () => clock.nowMs() + suspendedMs,
    monoMs: () => clock.monoMs() + suspendedMs,
    timer: (delayMs, fire) => clock.timer(delayMs, fire),
    breathe: () => clock.breathe(),
  }
  const supervisor = new Supervisor({
    runtime: createRuntime({ clock: own, logger, random: () => 0.5 }),
    id: 'web1',
    host: { name: 'web1', pid: 1 },
    backends: [backend],
    pools: checkPools(pools, { drainMs, processesMax }),
    processesMax,
    drainMs,
    healthCheckMs: 5_000,
    secret: options.secret,
    source: { cwd: '.', flags: {}, json: true, verbose: false, maintenance: false },
    launch,
  })
  const living = (): readonly FakeProcess[] => processes.filter(({ isGone }) => !isGone)
  return {
    clock,
    backend,
    supervisor,
    processes,
    living,
    launching,
    lines,
    suspend: (ms) => void (suspendedMs += ms),
    async pass(ms) {
      for (let left = ms; left > 0; left -= 500) {
        for (const process of living()) if (process.kinds.includes('begin')) process.stats()
        await clock.advance(Math.min(left, 500))
      }
    },
  }
}
