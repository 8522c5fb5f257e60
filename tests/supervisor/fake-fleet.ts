// Hosts that do what supervisors do for the autoscaler, without processes: they publish their record, follow the plan,
// and their workers are as busy as the test says. Time is virtual; the wall clock can be set by itself.
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { sleep } from '../../src/runtime/clock.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { LogFields, Logger } from '../../src/runtime/logger.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { createLoop } from '../../src/runtime/service.ts'
import type { Loop } from '../../src/runtime/service.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { ChildStatus, SupervisorRecord } from '../../src/supervisor/fleet.ts'
import { createFleet } from '../../src/supervisor/fleet.ts'
import { readPlan } from '../../src/supervisor/plan-notes.ts'
import { readScalingHistory } from '../../src/supervisor/scaling-history.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export interface Load {
  /** Ready jobs, by queue. */
  size: Record<string, number>
  /** Share of the slots that is busy. */
  busy: number
  /** Jobs that each worker ends in a second. */
  endedPerS: number
  /** The store does not answer. */
  isDown: boolean
  /** How long it takes to count. */
  countMs?: number
}

export interface FakeFleet {
  readonly clock: VirtualClock
  /** Added to the wall clock of every process, and of the store. */
  readonly skew: { processMs: number; storeMs: number }
  readonly backend: Backend
  readonly load: Load
  readonly logged: { readonly level: string; readonly fields: LogFields; readonly message: string }[]
  runtime(): Runtime
  host(id: string, options?: FakeHostOptions): FakeHost
  /** `0s 1→3`, oldest first, seconds since the beginning. */
  lines(): Promise<readonly string[]>
}

export interface FakeHostOptions {
  readonly pools?: Readonly<
    Record<string, { readonly queues: readonly string[]; readonly min?: number; readonly max?: number }>
  >
  readonly concurrency?: number
  readonly publishMs?: number
  readonly processesMax?: number
}

export function fakeFleet(): FakeFleet {
  const clock = new VirtualClock()
  const startMs = clock.nowMs()
  const skew = { processMs: 0, storeMs: 0 }
  const wall = (which: keyof typeof skew): Clock => ({
    nowMs: () => clock.nowMs() + skew[which],
    monoMs: () => clock.monoMs(),
    timer: (delayMs, fire) => clock.timer(delayMs, fire),
    breathe: () => clock.breathe(),
  })
  const load: Load = { size: { mail: 0 }, busy: 0, endedPerS: 0, isDown: false }
  const logged: FakeFleet['logged'] = []
  const at = (level: string) => (fields: LogFields, message: string) => void logged.push({ level, fields, message })
  const logger: Logger = { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') }
  const store = backendOver(new World(wall('storeMs')))
  const hosts: FakeHost[] = []
  const backend: Backend = {
    ...store,
    query: {
      ...store.query,
      counts: async () => {
        await sleep(clock, load.countMs ?? 0)
        if (load.isDown) throw new Error('the store is down')
        const slots = hosts.reduce((sum, host) => sum + host.slots, 0)
        const queues = Object.entries(load.size)
        const rows = queues.map(([queue, size]) => ({
          queue,
          counts: {
            scheduled: 0,
            queued: size,
            blocked: 0,
            dispatched: 0,
            running: Math.round((slots * load.busy) / queues.length),
            completed: 0,
            failed: 0,
            cancelled: 0,
          },
          oldestReadyAtMs: size === 0 ? null : wall('storeMs').nowMs() - 1_000,
        }))
        return rows
      },
    },
  }
  let lastId = 0
  const newId = () => `id-${String(++lastId).padStart(8, '0')}`
  const runtime = () => createRuntime({ clock: wall('processMs'), random: () => 0.5, newId, logger })
  return {
    clock,
    skew,
    backend,
    load,
    logged,
    runtime,
    host(id, options = {}) {
      const host = new FakeHost(id, backend, runtime(), load, options)
      hosts.push(host)
      return host
    },
    async lines() {
      const events = await readScalingHistory(backend.notes, { limit: 500, nowMs: clock.nowMs() })
      return events.toReversed().map(({ atMs, from, to }) => `${Math.round((atMs - startMs) / 1_000)}s ${from}→${to}`)
    },
  }
}

const PUBLISH_MS = 2_500

export class FakeHost {
  readonly id: string
  readonly #backend: Backend
  readonly #runtime: Runtime
  readonly #load: Load
  readonly #loop: Loop
  readonly #concurrency: number
  readonly #publishMs: number
  readonly #processesMax: number | undefined
  readonly #pools: Map<
    string,
    { readonly queues: readonly string[]; readonly min: number; readonly max: number; wanted: number }
  >
  readonly #startedMs: number
  /** Its workers tell nothing. */
  isSilent = false
  pinned = false

  constructor(id: string, backend: Backend, runtime: Runtime, load: Load, options: FakeHostOptions) {
    this.id = id
    this.#backend = backend
    this.#runtime = runtime
    this.#load = load
    this.#concurrency = options.concurrency ?? 10
    this.#publishMs = options.publishMs ?? PUBLISH_MS
    this.#processesMax = options.processesMax
    const pools = options.pools ?? { mail: { queues: ['mail'] } }
    this.#pools = new Map(
      Object.entries(pools).map(([name, { queues, min = 1, max = 15 }]) => [name, { queues, min, max, wanted: min }]),
    )
    this.#startedMs = runtime.clock.monoMs()
    this.#loop = createLoop({ name: `host ${id}`, runtime, pass: () => this.#pass() })
  }

  get slots(): number {
    return this.#concurrency * [...this.#pools.values()].reduce((sum, { wanted }) => sum + wanted, 0)
  }

  wanted(pool = 'mail'): number {
    return this.#pools.get(pool)?.wanted ?? 0
  }

  async start(): Promise<void> {
    await this.#pass()
    await this.#loop.start()
  }

  /** As if the power was cut: its record stays until it expires. */
  async vanish(): Promise<void> {
    await this.#loop.stop()
    for (const pool of this.#pools.values()) pool.wanted = 0
  }

  async #pass(): Promise<number> {
    for (const [name, pool] of this.#pools) {
      const share = (await readPlan(this.#backend.notes, name))?.plan.shares[this.id]
      if (share !== undefined && !this.pinned) pool.wanted = share
    }
    await createFleet({ notes: this.#backend.notes, runtime: this.#runtime }).publish(this.record())
    return this.#publishMs
  }

  record(): SupervisorRecord {
    const nowMs = this.#runtime.clock.monoMs()
    return {
      id: this.id,
      host: this.id,
      pid: 1,
      startedAtMs: 0,
      state: 'running',
      ...(this.#processesMax !== undefined && { processesMax: this.#processesMax }),
      pools: [...this.#pools].map(([name, { queues, min, max, wanted }]) => ({
        name,
        queues,
        min,
        max,
        wanted,
        concurrency: this.#concurrency,
        state: 'ok',
        ...(this.pinned && { pinned: true }),
        children: this.isSilent
          ? []
          : Array.from({ length: wanted }, (_, index) => this.#child(name, queues, index, nowMs)),
      })),
    }
  }

  #child(pool: string, queues: readonly string[], index: number, nowMs: number): ChildStatus {
    return {
      id: `${this.id}-${pool}-${index}`,
      workerIds: [],
      pool,
      queues,
      pid: 1,
      state: 'running',
      rssBytes: 0,
      cpuPercent: 0,
      loopLagMs: 0,
      processed: Math.round(((nowMs - this.#startedMs) / 1_000) * this.#load.endedPerS),
      failed: 0,
      running: Math.round(this.#concurrency * this.#load.busy),
      concurrency: this.#concurrency,
      startedAtMs: 0,
      lastHeartbeatAtMs: 0,
    }
  }
}
