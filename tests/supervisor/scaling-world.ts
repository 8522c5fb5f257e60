// A small world for the rules of the autoscaler: queues that fill, workers that start, run and drain, all in virtual
// seconds and without chance. What comes out is the list of steps that a reader would find in the history.
import { decideFleet } from '../../src/core/scaling-fleet.ts'
import { scalingLimits } from '../../src/core/scaling-limits.ts'
import type { ScalingLimits, ScalingOptions } from '../../src/core/scaling-limits.ts'
import { decidePool } from '../../src/core/scaling-pool.ts'
import { observe } from '../../src/core/scaling-rates.ts'
import type { Rates } from '../../src/core/scaling-rates.ts'
import { decideScale, isCooling } from '../../src/core/scaling.ts'
import type { ScaleStep } from '../../src/core/scaling.ts'

export interface WorldQueue {
  /** Jobs that arrive in this second. */
  readonly arrivals: (second: number) => number
  readonly serviceS: number
  readonly scaling?: ScalingOptions
}

export interface WorldPool {
  readonly queues: Readonly<Record<string, WorldQueue>>
  readonly concurrency?: number
  /** Workers at the beginning. Default 1. */
  readonly from?: number
}

export interface World {
  readonly pools: Readonly<Record<string, WorldPool>>
  readonly seconds: number
  /** Processes of the whole fleet. Default 20. */
  readonly processes?: number
  /** Workers say nothing in these seconds. */
  readonly isSilent?: (second: number) => boolean
}

export interface WorldStep {
  readonly second: number
  readonly pool: string
  readonly from: number
  readonly to: number
  readonly reasons: readonly string[]
}

export interface WorldResult {
  readonly steps: readonly WorldStep[]
  /** `35s 1→3`, with the pool before it when there are several. */
  readonly lines: readonly string[]
  /** Longest wait of a job that has started, and jobs left. */
  readonly waitMaxS: number
  readonly left: number
  readonly workersMax: number
}

interface Job {
  readonly readyS: number
  endsS: number
}

interface Worker {
  readonly id: string
  readonly readyS: number
  isDraining: boolean
  ended: number
  running: { readonly queue: string; readonly job: Job }[]
}

const SAMPLE_S = 5
const START_S = 2

export function runWorld(world: World): WorldResult {
  const pools = Object.entries(world.pools).map(([name, pool]) => new Pool(name, pool))
  const steps: WorldStep[] = []
  let workersMax = 0
  for (let second = 0; second < world.seconds; second++) {
    for (const pool of pools) pool.tick(second)
    workersMax = Math.max(
      workersMax,
      pools.reduce((sum, pool) => sum + pool.workers.length, 0),
    )
    if (second % SAMPLE_S !== 0) continue
    const asks = pools.map((pool) => pool.ask(second, world.isSilent?.(second) ?? false))
    for (const { pool: name, decision } of decideFleet(asks, [{ id: 'host', room: world.processes ?? 20 }])) {
      if (decision.action === 'hold') continue
      const pool = pools.find((one) => one.name === name)
      pool?.scale(second, decision.action, decision.to)
      steps.push({ second, pool: name, from: decision.from, to: decision.to, reasons: decision.reasons })
    }
  }
  const named = pools.length > 1
  return {
    steps,
    lines: steps.map(({ second, pool, from, to }) => `${second}s ${named ? `${pool} ` : ''}${from}→${to}`),
    waitMaxS: Math.max(...pools.map((pool) => pool.waitMaxS)),
    left: pools.reduce((sum, pool) => sum + pool.left, 0),
    workersMax,
  }
}

class Pool {
  readonly name: string
  workers: Worker[] = []
  waitMaxS = 0
  readonly #pool: WorldPool
  readonly #ready = new Map<string, Line>()
  readonly #limits = new Map<string, ScalingLimits>()
  readonly #history: ScaleStep[] = []
  #rates: Rates | null = null
  #wanted: number
  #lastId = 0

  constructor(name: string, pool: WorldPool) {
    this.name = name
    this.#pool = pool
    this.#wanted = pool.from ?? 1
    for (const [queue, { scaling }] of Object.entries(pool.queues)) {
      this.#ready.set(queue, new Line())
      this.#limits.set(queue, scalingLimits(scaling))
    }
    for (let index = 0; index < this.#wanted; index++) this.#start(-START_S)
  }

  get left(): number {
    const ready = [...this.#ready.values()].reduce((sum, line) => sum + line.length, 0)
    return ready + this.workers.reduce((sum, { running }) => sum + running.length, 0)
  }

  tick(second: number): void {
    for (const [queue, { arrivals }] of Object.entries(this.#pool.queues)) {
      const due = Math.floor(sumUntil(arrivals, second)) - Math.floor(sumUntil(arrivals, second - 1))
      for (let index = 0; index < due; index++) this.#ready.get(queue)?.push({ readyS: second, endsS: Infinity })
    }
    for (const worker of this.workers) {
      const before = worker.running.length
      worker.running = worker.running.filter(({ job }) => job.endsS > second)
      worker.ended += before - worker.running.length
    }
    this.workers = this.workers.filter(({ isDraining, running }) => !isDraining || running.length > 0)
    for (const worker of this.workers) if (!worker.isDraining && worker.readyS <= second) this.#fillUp(worker, second)
  }

  ask(second: number, isSilent: boolean) {
    const { concurrency = 10 } = this.#pool
    const running = (queue: string) =>
      this.workers.reduce((sum, worker) => sum + worker.running.filter((one) => one.queue === queue).length, 0)
    const queues = [...this.#ready].map(([name, line]) => {
      const waitMs = line.first === undefined ? 0 : (second - line.first.readyS) * 1_000
      return { name, size: line.length, running: running(name), waitMs, paused: false }
    })
    const workers = isSilent
      ? []
      : this.workers.map(({ id, ended, running: own, isDraining }) => {
          const state = isDraining ? ('draining' as const) : ('active' as const)
          return { id, ended, running: own.length, concurrency, state }
        })
    const nowMs = second * 1_000
    const { rates, metrics } = observe(this.#rates, { atMs: nowMs, queues, workers, ended: null })
    this.#rates = rates
    const from = this.#wanted
    const decisions = queues.map(({ name: queue }) => {
      const limits = this.#limits.get(queue)!
      const context = { queue, from, limits, history: this.#history, nowMs, metrics: metrics.get(queue) ?? null }
      return { queue, ...decideScale(context) }
    })
    const draining = this.workers.filter(({ isDraining }) => isDraining).length
    const mayShrink = [...this.#limits.values()].every((limits) => !isCooling(limits, this.#history, 'down', nowMs))
    const places = [{ id: 'host', has: from, min: 1, max: 100, draining, isStuck: false }]
    return { pool: this.name, decision: decidePool(from, decisions, { min: 1, max: 100 }), mayShrink, places }
  }

  scale(second: number, action: 'up' | 'down', to: number): void {
    this.#history.push({ action, atMs: second * 1_000 })
    for (let index = this.#wanted; index < to; index++) this.#start(second)
    const active = this.workers.filter(({ isDraining }) => !isDraining)
    for (const worker of active.slice(to)) worker.isDraining = true
    this.#wanted = to
  }

  #oldest(): { readonly queue: string; readonly line: Line } | undefined {
    let found: { readonly queue: string; readonly line: Line } | undefined
    for (const [queue, line] of this.#ready) {
      if ((line.first?.readyS ?? Infinity) < (found?.line.first?.readyS ?? Infinity)) found = { queue, line }
    }
    return found
  }

  #start(second: number): void {
    this.workers.push({ id: `w${++this.#lastId}`, readyS: second + START_S, isDraining: false, ended: 0, running: [] })
  }

  #fillUp(worker: Worker, second: number): void {
    const { concurrency = 10, queues } = this.#pool
    while (worker.running.length < concurrency) {
      const oldest = this.#oldest()
      const job = oldest?.line.take()
      if (oldest === undefined || job === undefined) return
      this.waitMaxS = Math.max(this.waitMaxS, second - job.readyS)
      job.endsS = second + (queues[oldest.queue]?.serviceS ?? 1)
      worker.running.push({ queue: oldest.queue, job })
    }
  }
}

/** First in, first out, without moving what stays. */
class Line {
  readonly #jobs: Job[] = []
  #head = 0

  get length(): number {
    return this.#jobs.length - this.#head
  }

  get first(): Job | undefined {
    return this.#jobs[this.#head]
  }

  push(job: Job): void {
    this.#jobs.push(job)
  }

  take(): Job | undefined {
    return this.#jobs[this.#head++]
  }
}

const sums = new WeakMap<(second: number) => number, number[]>()

/** All that has arrived up to and with this second. */
function sumUntil(arrivals: (second: number) => number, second: number): number {
  const known = sums.get(arrivals) ?? []
  sums.set(arrivals, known)
  for (let at = known.length; at <= second; at++) known.push((known[at - 1] ?? 0) + arrivals(at))
  return second < 0 ? 0 : known[second]!
}
