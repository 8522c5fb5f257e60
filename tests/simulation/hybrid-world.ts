// The stores of the hybrid in the simulation: a ledger over the world, one Redis that everything may befall, and per process
// the real rules over a network to both.
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import type { Hybrid } from '../../src/backends/hybrid/hybrid.ts'
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { RaceSnapshot } from '../../src/backends/hybrid/memory-race.ts'
import type { Ledger, OpenRequest, Race, TokenField } from '../../src/backends/hybrid/ports.ts'
import { isHeldBy, refusalOf } from '../../src/backends/hybrid/race-model.ts'
import { raceProblems } from '../../src/backends/hybrid/race-invariants.ts'
import { refOf } from '../../src/backends/hybrid/token-text.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import type { HybridTimes } from '../../src/backends/hybrid/times.ts'
import type { World } from '../../src/backends/memory/world.ts'
import type { ClaimedJob, WorkerId } from '../../src/core/job.ts'
import type { HandOver } from '../../src/store/hand-overs.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { LeadReply, LeadRequest } from '../../src/store/worker-store.ts'
import type { Checker } from './checker.ts'
import type { FaultKind } from './faults.ts'
import type { Focus } from './focus.ts'
import type { Random } from './random.ts'
import type { SimProcess, SimWorld } from './sim-process.ts'

const QUEUES = ['open', 'limited', 'ticks'] as const
const TIMES = {
  ...HYBRID_TIMES,
  raceMs: 300,
  ledgerMs: 1_000,
  lateMs: 1_000,
  returnMs: 400,
  returnMaxMs: 2_000,
  reconcileMs: 200,
  watchMs: 100,
  // So small that lanes fill up and backlogs form.
  window: 8,
  windowTotal: 36,
}

/** The breaker, a beat, the flip, the barrier and a pass of reconcile, several times over. */
const READ_ONLY_WAIT_MAX_MS = 5_000

export class HybridWorld {
  readonly #world: World
  readonly #net: SimWorld
  readonly #checker: Checker
  readonly #race = new MemoryRace({ identity: 'redis-1' })
  readonly #state = new LedgerState()
  readonly #ledger: Ledger
  readonly #times: HybridTimes
  #servers = 1
  #server = 'redis-1'
  #copies: RaceSnapshot[] = []
  readonly #isFocused: boolean
  readonly #everyoneLeads: boolean
  #isReadOnly = false
  /** The last call of its kind per queue: a copy of it may still be on its way. */
  readonly #opens = new Map<string, OpenRequest>()
  /** What pushes have handed over, and for which take. */
  readonly #handed = new Map<TokenField, number>()
  readonly #processes: { readonly process: SimProcess; readonly hybrid: Hybrid }[] = []

  /** `isSlowToMark`: runs stay unmarked for long, so that what protects them has something to protect. */
  constructor(world: World, net: SimWorld, checker: Checker, focus: Focus | null, isSlowToMark: boolean) {
    const times = focus === null ? TIMES : { ...TIMES, window: 40, breakerMs: focus.breakerMs }
    this.#times = isSlowToMark || focus !== null ? { ...times, markAfterMs: 3_000 } : times
    this.#world = world
    this.#isFocused = focus !== null
    this.#everyoneLeads = focus?.everyoneLeads ?? false
    this.#net = net
    this.#checker = checker
    this.#ledger = this.#observed(memoryLedger(world, this.#state))
  }

  /** What one process sees. */
  reach(process: SimProcess, store: Backend, isConfirmed: boolean): Backend {
    const race = this.#race
    const networked = process.reachPort<Race>('redis', race, true)
    const { open } = process.reachPort<Pick<Race, 'open'>>(
      'redis',
      {
        open: (queue, request) => {
          this.#opens.set(queue, request)
          return race.open(queue, request)
        },
      },
      true,
    )
    const { backend, hybrid } = composeHybrid({
      runtime: process.runtime,
      store: process.reach(store),
      ledger: process.reachPort('ledger', this.#ledger, false),
      race: {
        ...networked,
        open,
        listen: (onBell) => race.listen((queue) => process.hint(() => onBell(queue))),
        hear: (session, onHanded, onBack) => {
          const tell = process.messages(onHanded, onBack)
          return race.hear(session, (handed) => {
            for (const text of handed.texts) this.#handed.set(text.slice(0, text.indexOf(' ')), handed.c)
            tell(handed)
          })
        },
        start: () => Promise.resolve(),
        stop: () => Promise.resolve(),
      },
      times: this.#times,
      isConfirmed: () => isConfirmed,
      threadMonoMs: () => process.runtime.clock.monoMs(),
    })
    this.#processes.push({ process, hybrid })
    const handedOut = (worker: WorkerId, jobs: readonly ClaimedJob[]): void => {
      for (const { id, lease } of jobs) {
        this.#checker.handedOut(id, worker, lease)
        this.#net.trace.add(this.#net.time.nowMs, process.name, 'is handed', id, lease)
      }
    }
    return process.watchBeats({
      ...backend,
      handOvers: {
        listen: (worker, onHandOver, onBack) => {
          const heard = (handOver: HandOver): boolean | undefined => {
            handedOut(worker, handOver.jobs)
            return onHandOver(handOver)
          }
          return backend.handOvers!.listen(worker, heard, onBack)
        },
      },
      workers: this.#everyoneLeads ? { ...backend.workers, lead: leadAlways } : backend.workers,
      jobs: {
        ...backend.jobs,
        claim: async (request) => {
          const reply = await backend.jobs.claim(request)
          handedOut(request.worker, reply.jobs)
          return reply
        },
      },
    })
  }

  /** Faults at moments. */
  plot(
    random: Random,
    plot: (kind: FaultKind, times: number, strike: () => void) => void,
    freezeWorker: (forMs: number) => void,
  ): void {
    const race = this.#race
    // A worker that lives and cannot say what it runs, while its tokens are lost: what the barrier waits for.
    plot('redis-flushed-beside-frozen', 5, () => {
      freezeWorker(random.int(1_000, 1_900))
      race.flush()
    })
    plot('redis-flushed', 3, () => race.flush())
    plot('redis-suffix-lost', 3, () => {
      race.loseSuffix(random.int(1, 60))
      this.#become(`redis-${++this.#servers}`)
    })
    plot('redis-old-copy', 3, () => {
      this.#copies.push(race.snapshot())
      race.restore(random.pick(this.#copies))
      this.#become(`redis-${++this.#servers}`)
    })
    plot('redis-other-and-back', 2, () => this.#goAndComeBack(random))
    plot('redis-evicted', 10, () =>
      race.evict(
        this.#isFocused ? 'open' : random.pick(QUEUES),
        random.pick(['state', 'high', 'normal', 'low', 'held']),
      ),
    )
    plot('redis-outage', 3, () => {
      this.#net.redisOutageUntilMs = this.#net.time.nowMs + random.pick([random.int(100, 600), random.int(600, 4_000)])
    })
    plot('redis-full', 2, () => {
      race.setFull(true)
      this.#net.time.at(random.int(200, 2_000), () => race.setFull(false))
    })
    plot('redis-read-only', 2, () =>
      this.#refuseWrites(this.#isFocused ? random.int(6_500, 8_000) : random.int(200, 4_000)),
    )
    // With all of its data: a failover that lost nothing.
    plot('redis-other-server', 2, () => this.#become(`redis-${++this.#servers}`))
    // A late copy of the call that opened the epoch finds nothing there.
    plot('redis-reopened', 2, () => {
      race.flush()
      for (const [queue, request] of this.#opens) void race.open(queue, request).catch(() => undefined)
    })
    // A standby that has everything: nothing mints until somebody has said that it is another server.
    plot('postgres-moved', 1, () => {
      this.#state.server = `server-${++this.#servers}`
    })
    // Copies for later.
    plot('redis-old-copy', 3, () => void this.#copies.push(race.snapshot()))
  }

  /** Clients are sent to a replica that lags behind, and back to the first server, which has what it had. */
  #goAndComeBack(random: Random): void {
    const race = this.#race
    const lagging = race.snapshot()
    this.#net.time.at(random.int(0, 300), () => {
      const first = { server: this.#server, copy: race.snapshot() }
      race.restore(lagging)
      this.#become(`redis-${++this.#servers}`)
      this.#net.time.at(random.int(50, 2_000), () => {
        race.restore(first.copy)
        this.#become(first.server)
      })
    })
  }

  /** Work has to go on meanwhile: whoever waits at the end has not waited all that time. */
  #refuseWrites(forMs: number): void {
    if (this.#isReadOnly) return
    this.#isReadOnly = true
    this.#race.refuseWrites(true)
    this.#net.time.at(forMs, () => {
      if (!this.#isReadOnly) return
      if (this.#isFocused) this.#checkWaits()
      this.#isReadOnly = false
      this.#race.refuseWrites(false)
    })
  }

  #checkWaits(): void {
    for (const { id, status, updatedAtMs, readyAtMs } of this.#world.jobs.values()) {
      const waitedMs = this.#world.nowMs() - Math.max(updatedAtMs, readyAtMs)
      if ((status === 'queued' || status === 'dispatched') && waitedMs > READ_ONLY_WAIT_MAX_MS)
        this.#checker.fail('pick-up', `job ${id} is ${status} for ${waitedMs} ms while Redis refuses to write`)
    }
  }

  #become(server: string): void {
    this.#server = server
    this.#race.become(server)
  }

  heal(): void {
    this.#net.redisOutageUntilMs = 0
    this.#race.setFull(false)
    this.#race.refuseWrites(false)
    this.#isReadOnly = false
  }

  check(): void {
    for (const queue of this.#race.queueNames) {
      const [problem] = raceProblems(this.#race.inspect(queue))
      if (problem !== undefined) this.#checker.fail('held', `${queue}: ${problem}`)
    }
    for (const { process, hybrid } of this.#processes) if (process.alive) this.#checkStrays(hybrid)
  }

  /** What a live session holds it runs, or has finished, or it doubts itself: else nobody would ever look. */
  #checkStrays({ sessions, view }: Hybrid): void {
    for (const session of sessions.all()) {
      if (this.#world.workers.get(session.worker)?.record.state !== 'alive') continue
      for (const own of session.queues.values()) {
        const queue = this.#race.inspect(own.name)
        const tag = view.tag(own.name)
        const isBusy = own.isSuspect || own.taking > 0 || own.checking !== undefined
        if (isBusy || tag === null || refusalOf(queue, { identity: this.#server, isFull: false }, tag) !== null)
          continue
        const held = [...queue.held].filter(([, note]) => isHeldBy(note, session.worker)).map(([field]) => field)
        for (const field of own.notDone(held)) {
          if (session.inFlight.has(refOf(field).lease)) continue
          // Not heard of yet: the worker misses it by the number of the take, or the job does not end.
          if ((this.#handed.get(field) ?? 0) > own.hands.knownC) continue
          this.#checker.fail('stray', `${session.worker} holds ${field} and does not know it`)
        }
      }
    }
  }

  /** Redis holds no token any more. */
  get isEmpty(): boolean {
    return this.#race.queueNames.every((queue) => {
      const { held, lanes } = this.#race.inspect(queue)
      return [...held.keys()].every((field) => field === '#') && lanes.every((lane) => lane.length === 0)
    })
  }

  left(): string {
    return this.#race.queueNames
      .flatMap((queue) => [...this.#race.inspect(queue).held].map(([field, note]) => `${queue} ${field}=${note}`))
      .filter((text) => !text.includes(' #='))
      .slice(0, 5)
      .join('; ')
  }

  #observed(ledger: Ledger): Ledger {
    return {
      ...ledger,
      insert: (jobs, offers) => {
        this.#checker.inserted(jobs)
        return ledger.insert(jobs, offers)
      },
    }
  }
}

/** Two leaders are harmless, so any number is. */
async function leadAlways({ holder }: LeadRequest): Promise<LeadReply> {
  return { held: true, holder, term: 1 }
}
