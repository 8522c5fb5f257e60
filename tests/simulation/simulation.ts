// One seed: a store, three or more working processes, producers and an operator, a network and a clock that
// misbehave. First everything goes wrong that the seed has in store; then the faults stop, and within a
// bound everything must have ended. The same seed gives the same run, to the last step.
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { isFinal } from '../../src/core/job.ts'
import type { WorkerId } from '../../src/core/job.ts'
import { rateLimit } from '../../src/core/rate.ts'
import { createMillrace, isMillraceError } from '../../src/index.ts'
import type { Millrace } from '../../src/index.ts'
import type { Failpoint } from '../../src/runtime/failpoints.ts'
import type { Backend } from '../../src/store/ports.ts'
import { Checker } from './checker.ts'
import type { Notable, Violation } from './checker.ts'
import { FAULT_KINDS, Faults, MILD_ODDS, REDIS_FAULT_KINDS, USUAL_ODDS } from './faults.ts'
import type { CallOdds, FaultKind } from './faults.ts'
import { focusOf } from './focus.ts'
import type { Focus } from './focus.ts'
import { HybridWorld } from './hybrid-world.ts'
import { simJobs } from './jobs.ts'
import { Ledger } from './ledger.ts'
import { createRandom } from './random.ts'
import type { Random } from './random.ts'
import { SimProcess, WALL_START_MS } from './sim-process.ts'
import type { SimWorld } from './sim-process.ts'
import { Trace } from './trace.ts'
import { VirtualTime } from './virtual-time.ts'
import { SCHEDULE, enqueueMany, planFocused, planWorkload } from './workload.ts'
import type { Act, Actor } from './workload.ts'

export interface SimResult {
  readonly seed: number
  readonly steps: number
  readonly jobs: number
  readonly workers: number
  readonly violation: Violation | null
  readonly traceHash: string
  readonly trace: readonly string[]
  readonly edges: ReadonlyMap<string, number>
  readonly notables: ReadonlyMap<Notable, number>
  readonly faults: ReadonlyMap<FaultKind, number>
  readonly failpoints: ReadonlyMap<Failpoint, number>
}

/** How long things go wrong, when the operator tidies up after that, and when nothing is on its way any more. */
const WIDE = { faultMs: 12_000, tidyMs: 8_000, quietMs: 9_000 } as const
const FOCUSED = { tidyMs: 3_500, quietMs: 4_000 } as const
/** Every process killer may cost a leader lease, a ttl and a back-off, one after the other: this is many times that. */
const LIVENESS_PHASE_MS = 300_000
const STEPS_MAX = 60_000
/** Relay, reconcile and the watch over Redis have steps of their own. */
const HYBRID_STEPS_MAX = 400_000
const HYBRID_CHECK_EVERY = 20
const JOBS_MIN = 105
/** Late requests have landed, the dead are found, a leader leads. */
const SETTLED_AFTER_MS = 25_000
/** Handlers take up to 3 s and there are slots for all of them. */
const PICK_UP_MAX_MS = 8_000
/** Beside that the relay may have to wait for a leader, and for another one when that is killed. */
const DISPATCH_MAX_MS = 15_000
/** The token of a worker that was killed waits for a leader that declares it dead, and these are killed too. */
const RESCUE_MAX_MS = 45_000
const TTL_MS = 2_000
const WORLD_CHECK_EVERY = 100
const RATE = { limit: 20, per: '1s', burst: 3 } as const

/** Late and doubled calls of these are what the guards of the hybrid are for: so many times as often as others. */
const ODD_CALLS: Readonly<Record<string, number>> = {
  'redis.push': 5,
  'redis.take': 2,
  'redis.open': 8,
  'ledger.adopt': 4,
}

/** What holds the jobs. */
export type SimStore = 'memory' | 'hybrid'

export class Simulation {
  readonly #seed: number
  readonly #focus: Focus | null
  readonly #phases: Readonly<Record<'faultMs' | 'tidyMs' | 'quietMs', number>>
  readonly #hybrid: HybridWorld | null
  readonly #random: Random
  readonly #time: VirtualTime
  readonly #net: SimWorld
  readonly #ledger = new Ledger()
  readonly #checker = new Checker()
  readonly #world: World
  readonly #store: Backend
  readonly #processes = new Map<string, SimProcess>()
  readonly #actors = new Map<string, Promise<Actor>>()
  readonly #workers: number
  #storeJumpMs = 0
  #healed = false

  constructor(seed: number, keepTrace = false, kind: SimStore = 'memory') {
    this.#seed = seed
    this.#random = createRandom(seed)
    this.#focus = kind === 'hybrid' ? focusOf(seed) : null
    this.#phases = this.#focus === null ? WIDE : { ...FOCUSED, faultMs: this.#focus.faultMs }
    this.#time = new VirtualTime(this.#random.fork())
    this.#net = {
      time: this.#time,
      faults: new Faults(this.#random.fork(), faultsOf(this.#random.fork(), this.#focus, kind)),
      oddsOf: oddsFor(this.#focus),
      crashes: this.#focus?.crashes ?? 1,
      trace: new Trace(keepTrace),
      failpointsHit: new Map(),
      outageUntilMs: 0,
      goodBeats: new Map(),
      redisOutageUntilMs: 0,
    }
    const clock = {
      nowMs: () => Math.floor(WALL_START_MS + this.#time.nowMs + this.#storeJumpMs),
      monoMs: () => this.#time.nowMs,
      timer: (delayMs: number, fire: () => void) => this.#time.at(delayMs, fire),
      breathe: () => Promise.resolve(),
    }
    this.#world = new World(clock, (record) => {
      this.#checker.changed(record)
      const status = record.erased ? 'removed' : record.status
      this.#net.trace.add(this.#time.nowMs, record.id, status, record.lease, record.attemptCount)
    })
    this.#checker.world = this.#world
    this.#checker.trustLeftMs = (id) => this.#trustLeftMs(id)
    this.#store = this.#observed(backendOver(this.#world))
    this.#hybrid =
      kind === 'hybrid' ? new HybridWorld(this.#world, this.#net, this.#checker, this.#focus, seed % 3 !== 0) : null
    this.#workers = this.#random.int(3, 4)
  }

  async run(): Promise<SimResult> {
    const random = this.#random.fork()
    for (let no = 1; no <= this.#workers; no++) this.#launchWorker(`worker-${no}`)
    const { faultMs } = this.#phases
    const acts =
      this.#focus === null
        ? planWorkload(random, this.#ledger, faultMs * 0.9)
        : planFocused(random, this.#ledger, faultMs * 0.9, this.#focus)
    for (const act of acts) {
      this.#time.at(act.atMs, () => this.#perform(act, random.pick(['producer-1', 'producer-2', 'operator'])))
    }
    this.#plotFaults(random.fork())
    this.#time.at(faultMs * 0.8, () => this.#topUp('producer-3', random))
    this.#time.at(faultMs, () => this.#heal())
    await this.#loop()
    return {
      seed: this.#seed,
      steps: this.#time.steps,
      jobs: this.#world.lastNo,
      workers: this.#workers,
      violation: this.#checker.violation,
      traceHash: this.#net.trace.hash,
      trace: this.#net.trace.lines,
      edges: this.#checker.edges,
      notables: this.#checker.notables,
      faults: this.#net.faults.hits,
      failpoints: this.#net.failpointsHit,
    }
  }

  async #loop(): Promise<void> {
    const endMs = this.#phases.faultMs + LIVENESS_PHASE_MS
    while (this.#checker.violation === null) {
      if (!(await this.#time.step())) break
      if (this.#time.steps % WORLD_CHECK_EVERY === 0) this.#checker.checkWorld()
      if (this.#hybrid !== null && this.#time.steps % HYBRID_CHECK_EVERY === 0) this.#hybrid.check()
      if (this.#healed && this.#time.steps % 50 === 0 && this.#isDone()) break
      if (this.#healed && this.#time.steps % 50 === 0) this.#checkPickUp()
      if (this.#time.nowMs > endMs || this.#time.steps > (this.#hybrid === null ? STEPS_MAX : HYBRID_STEPS_MAX)) {
        this.#checker.fail('liveness', `not everything ended: ${this.#unfinished()}`)
        return
      }
    }
    if (this.#checker.violation === null) this.#checkEnd()
  }

  /** Sees what goes in and out of the store itself, before the network. */
  #observed(store: Backend): Backend {
    const limit = rateLimit(RATE)
    return {
      ...store,
      jobs: {
        ...store.jobs,
        insert: (jobs) => {
          this.#checker.inserted(jobs)
          return store.jobs.insert(jobs)
        },
      },
      workers: {
        ...store.workers,
        declareDead: async (seen) => {
          const dead = await store.workers.declareDead(seen)
          for (const id of dead) this.#checkDeath(id)
          return dead
        },
      },
      limits: {
        ...store.limits,
        take: async (requests) => {
          const replies = await store.limits.take(requests)
          this.#checker.tokens(requests, replies, limit)
          return replies
        },
      },
    }
  }

  #trustLeftMs(id: WorkerId): number {
    return (this.#net.goodBeats.get(id) ?? -Infinity) + TTL_MS * 0.8 - this.#time.nowMs
  }

  /** Nobody may be given up while he may still trust himself. */
  #checkDeath(id: WorkerId): void {
    const leftMs = this.#trustLeftMs(id)
    if (leftMs > 0) this.#checker.fail('trust', `worker ${id} was declared dead ${leftMs} ms too early`)
  }

  #launchWorker(name: string): void {
    const { actor, process } = this.#launch(name, () => this.#launchWorker(name))
    const drawn = this.#random.int(2, 6)
    const isSingle = name === 'worker-1' && (this.#focus?.longRuns ?? 0) > 0
    const concurrency = isSingle ? 1 : drawn
    const work = actor.then(({ mill }) => mill.work({ concurrency, heartbeat: 500, ttl: TTL_MS }))
    // A process that cannot reach its store at the start exits and is started again.
    work.catch(() => process.crash())
  }

  #launch(name: string, relaunch: () => void): { readonly process: SimProcess; readonly actor: Promise<Actor> } {
    const restartMs = this.#random.int(50, 3_000)
    const process = new SimProcess(name, this.#net, this.#random.fork(), () => {
      this.#time.at(this.#healed ? 50 : restartMs, relaunch)
    })
    this.#processes.set(name, process)
    this.#net.trace.add(this.#time.nowMs, name, 'starts')
    const jobs = simJobs(process, this.#ledger, this.#checker)
    const actor = createMillrace({
      jobs: Object.values(jobs),
      backend:
        this.#hybrid?.reach(process, this.#store, this.#focus === null && this.#seed % 5 === 0) ??
        process.reach(this.#store),
      runtime: process.runtime,
      storeTimeout: 1_500,
      queues: { limited: { perKey: { concurrency: 2, rate: RATE } } },
      secrets: { mode: 'off' },
      // History is written once a minute and folded by whoever leads: tests/features/history.test.ts.
      metrics: { history: false },
      // The workload names jobs by definition, so the tuple of known names does not matter here.
    }).then((mill) => ({ mill: mill as unknown as Millrace, jobs }))
    actor.catch(() => process.crash())
    return { process, actor }
  }

  /** A seed whose producers were down for most of the time still has enough jobs to be worth it. */
  #topUp(who: string, random: Random): void {
    const missing = JOBS_MIN - this.#world.lastNo
    for (let left = missing; left > 0; left -= 5) this.#perform({ ...enqueueMany(random, this.#ledger, 5) }, who)
  }

  #perform(act: Pick<Act, 'name' | 'run'>, who: string): void {
    let process = this.#processes.get(who)
    let actor = this.#actors.get(who)
    if (process === undefined || actor === undefined || !process.alive) {
      const launched = this.#launch(who, () => undefined)
      process = launched.process
      actor = launched.actor
      this.#actors.set(who, actor)
    }
    this.#net.trace.add(this.#time.nowMs, who, act.name)
    const ready = actor
    process.enter(() => {
      ready
        .then((it) => act.run(it))
        .catch((error: unknown) => {
          if (!isExpected(error)) this.#checker.fail('no-surprise', `${act.name}: ${String(error)}`)
          this.#net.trace.add(
            this.#time.nowMs,
            who,
            act.name,
            'failed:',
            error instanceof Error ? error.message : String(error),
          )
        })
    })
  }

  /** Faults at moments, beside those that strike single calls. */
  #plotFaults(random: Random): void {
    const { faults } = this.#net
    const plot = (kind: FaultKind, times: number, strike: () => void): void => {
      const most = this.#focus === null ? times : (this.#focus.faults[kind] ?? 0)
      for (let count = random.int(Math.min(most, 1), most); count > 0; count--) {
        this.#time.at(random.next() * this.#phases.faultMs, () => {
          if (!faults.isOn(kind)) return
          faults.count(kind)
          strike()
        })
      }
    }
    const anyone = (): SimProcess => random.pick([...this.#processes.values()])
    const workers = (): SimProcess[] => [...this.#processes.values()].filter(({ name }) => name.startsWith('worker'))
    this.#hybrid?.plot(random.fork(), plot, (forMs) => random.pick(workers()).pause(forMs))
    plot('crash', 4, () => anyone().crash())
    // Around the ttl it is most telling: some come back just before, some just after they are given up.
    plot('pause', 5, () =>
      anyone().pause(random.pick([random.int(200, 1_500), random.int(1_500, 4_000), random.int(3_000, 8_000)])),
    )
    plot('partition', 5, () => anyone().cutOff(random.pick([random.int(200, 1_500), random.int(1_500, 4_000)])))
    plot('store-outage', 2, () => {
      this.#net.outageUntilMs = this.#time.nowMs + random.int(100, 2_500)
    })
    plot('store-clock-jump', 2, () => {
      this.#storeJumpMs += random.int(500, 20_000)
    })
  }

  #heal(): void {
    this.#healed = true
    this.#net.faults.heal()
    this.#net.outageUntilMs = 0
    this.#hybrid?.heal()
    for (const process of this.#processes.values()) process.heal()
    this.#net.trace.add(this.#time.nowMs, 'everything heals')
    // Requests still on their way may land up to seven seconds later. Then the operator tidies up: nothing stays paused, no batch stays open, the schedule ends.
    const tidy = async ({ mill }: Actor): Promise<void> => {
      for (const queue of ['open', 'limited', 'ticks']) await mill.queues.resume(queue)
      for (const id of this.#world.batches.keys()) await this.#store.batches.seal(id)
      if (this.#world.schedules.has(SCHEDULE)) await mill.schedules.pause(SCHEDULE)
    }
    this.#topUp('late-producer', this.#random.fork())
    this.#time.at(this.#phases.tidyMs, () => this.#perform({ name: 'tidy up', run: tidy }, 'janitor'))
  }

  /** Long after everything healed, a ready job is not left lying. */
  #checkPickUp(): void {
    if (this.#time.nowMs < this.#phases.faultMs + SETTLED_AFTER_MS) return
    if (this.#hybrid !== null) {
      this.#checkDispatch()
      return
    }
    for (const [name, { ready, config }] of this.#world.queues) {
      const waitedMs = this.#world.nowMs() - (ready.oldestReadyAtMs() ?? Infinity)
      if (!config.paused && waitedMs > PICK_UP_MAX_MS)
        this.#checker.fail('pick-up', `a job of ${name} is ready for ${waitedMs} ms`)
    }
  }

  /** A job that comes back keeps the time it became ready first; here it counts since when it is where it is. */
  #checkDispatch(): void {
    for (const { id, queue, status, updatedAtMs, readyAtMs } of this.#world.jobs.values()) {
      const waitedMs = this.#world.nowMs() - Math.max(updatedAtMs, readyAtMs)
      const mostMs = status === 'queued' ? DISPATCH_MAX_MS : status === 'dispatched' ? RESCUE_MAX_MS : Infinity
      if (waitedMs > mostMs && !this.#world.queue(queue).config.paused)
        this.#checker.fail('pick-up', `job ${id} of ${queue} is ${status} for ${waitedMs} ms`)
    }
  }

  #isDone(): boolean {
    if (this.#time.nowMs < this.#phases.faultMs + this.#phases.quietMs) return false
    for (const { status } of this.#world.jobs.values()) if (!isFinal(status)) return false
    return this.#hybrid?.isEmpty ?? true
  }

  #unfinished(): string {
    const live = [...this.#world.jobs.values()].filter(({ status }) => !isFinal(status))
    const told = live
      .slice(0, 5)
      .map(
        ({ id, name, status, waitsFor, worker, lease }) =>
          `${name} ${id} ${status} ${waitsFor ?? ''} ${worker ?? ''} lease ${lease}`,
      )
    return `${live.length} jobs: ${told.join('; ')} ${this.#hybrid?.left() ?? ''}`
  }

  /** Everything ended; nothing is lost, nothing is there that nobody asked for, nothing is still held. */
  #checkEnd(): void {
    const checker = this.#checker
    checker.checkWorld()
    const world = this.#world
    for (const id of this.#ledger.acknowledged()) {
      if (!world.jobs.has(id) && !this.#ledger.removals.has(id))
        checker.fail('nothing-lost', `job ${id} was acknowledged and is gone`)
    }
    const byRequest = new Map<number, number>()
    for (const { payload, replayOf, uniqueKey } of world.jobs.values()) {
      const { no } = JSON.parse(payload) as { no: number }
      // A request that was first answered as a duplicate left no id behind: its repetition may be a job of its own.
      if (no >= 0 && replayOf === null && uniqueKey === null) byRequest.set(no, (byRequest.get(no) ?? 0) + 1)
    }
    for (const [no, count] of byRequest)
      if (count > 1) checker.fail('nothing-doubled', `request ${no} became ${count} jobs`)
    if (world.groups.size > 0) checker.fail('nothing-held', `${world.groups.size} groups are still held`)
    if (world.keySlots.size > 0) checker.fail('nothing-held', `${world.keySlots.size} key slots are still held`)
    for (const [name, { slots }] of world.queues) {
      if (slots.used > 0) checker.fail('nothing-held', `${slots.used} slots of queue ${name} are still held`)
    }
    this.#checkBatches()
    this.#checkTicks()
  }

  #checkBatches(): void {
    for (const { record } of this.#world.batches.values()) {
      const { finishedAtMs, callbacks, id } = record
      if (finishedAtMs === null) this.#checker.fail('batch-ends', `batch ${id} never finished`)
      const fired = [callbacks.success, callbacks.failure].filter((job) => job !== null && this.#world.jobs.has(job.id))
      const complete = callbacks.complete !== null && this.#world.jobs.has(callbacks.complete.id)
      if (fired.length !== 1 || !complete)
        this.#checker.fail('batch-callbacks', `batch ${id} fired ${fired.length} and complete: ${complete}`)
    }
  }

  #checkTicks(): void {
    const ticks = [...this.#world.jobs.values()].flatMap(({ schedule }) => (schedule === null ? [] : [schedule.tickMs]))
    ticks.sort((one, other) => one - other)
    for (const [index, tick] of ticks.entries()) {
      const next = ticks[index + 1]
      if (next !== undefined && next - tick !== 1_000) {
        this.#checker.fail('no-tick-missed', `ticks ${tick} and ${next} are not a second apart`)
      }
    }
  }
}

/** Each seed switches whole classes on and off; with a focus it has those of the focus. */
function faultsOf(random: Random, focus: Focus | null, kind: SimStore): ReadonlySet<FaultKind> {
  const kinds: readonly FaultKind[] = kind === 'hybrid' ? [...FAULT_KINDS, ...REDIS_FAULT_KINDS] : FAULT_KINDS
  return new Set(kinds.filter((one) => (focus === null ? random.chance(0.65) : focus.faults[one] !== undefined)))
}

function oddsFor(focus: Focus | null): (call: string) => CallOdds {
  if (focus !== null) return (call) => ({ ...MILD_ODDS, ...focus.calls[call] })
  return (call) => {
    const times = ODD_CALLS[call] ?? 1
    const { delayed, doubled } = USUAL_ODDS
    return times === 1 ? USUAL_ODDS : { ...USUAL_ODDS, delayed: delayed * times, doubled: doubled * times }
  }
}

/** What an act may be told when stores fail and others act at the same time. */
const EXPECTED_CODES: ReadonlySet<string> = new Set([
  'STORE_TIMEOUT',
  'STORE_UNAVAILABLE',
  'JOB_NOT_FOUND',
  'NOT_REPLAYABLE',
  'UNIQUE_KEY_TAKEN',
  'DEPENDENCY_NOT_FOUND',
  'BATCH_CLOSED',
  'BATCH_NOT_FOUND',
  'SCHEDULE_NOT_FOUND',
  'NOTE_CONFLICT',
])

function isExpected(error: unknown): boolean {
  return isMillraceError(error) && EXPECTED_CODES.has(error.code)
}

export function simulate(seed: number, keepTrace = false, kind: SimStore = 'memory'): Promise<SimResult> {
  return new Simulation(seed, keepTrace, kind).run()
}
