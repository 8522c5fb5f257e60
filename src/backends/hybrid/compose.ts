// The hybrid backend: PostgreSQL is the ledger, Redis carries dispatch tokens and may be wiped at any moment. Everything that
// is not said here is the backend of the ledger's.
import type { LeaseRef, WorkerId } from '../../core/job.ts'
import type { Backend, Capabilities, InsideTransaction, JobStore, ThreadLiveness } from '../../store/ports.ts'
import { CONFIG_TOPIC, controlTopic, readyTopic } from '../../store/wakeups.ts'
import type { BeatReply, WorkerStore } from '../../store/worker-store.ts'
import { bounded } from '../../runtime/bounded.ts'
import { claim } from './claim.ts'
import { ConfigSync } from './config-sync.ts'
import { Hybrid } from './hybrid.ts'
import type { HybridParts } from './hybrid.ts'
import { hybridHandOvers } from './hand-overs.ts'
import { insert } from './insert.ts'
import { Keeper } from './keeper.ts'
import type { KeeperReply } from './keeper.ts'
import { leave, reapAll } from './reaper.ts'
import { heldFields } from './self-check.ts'
import { Session } from './session.ts'
import { applyAll } from './settle.ts'
import { refOf } from './token-text.ts'
import { createUpkeep, mayLead } from './upkeep.ts'

export interface HybridBackendParts extends HybridParts {
  /** Of the life of this worker, in a thread of its own; null: beats come from the main loop. */
  readonly threadOf?: (session: Session) => Pick<ThreadLiveness, 'module' | 'options'>
}

export function hybridOver(parts: HybridBackendParts): Backend {
  return composeHybrid(parts).backend
}

/** For tests, which look inside and take steps of their own. */
export function composeHybrid(parts: HybridBackendParts): { readonly backend: Backend; readonly hybrid: Hybrid } {
  const hybrid = new Hybrid(parts)
  return { hybrid, backend: backendOf(hybrid, parts) }
}

function backendOf(hybrid: Hybrid, parts: HybridBackendParts): Backend {
  const { store, race } = hybrid
  const sync = new ConfigSync(hybrid)
  let stopListening: (() => void) | undefined
  let stopConfig: (() => void) | undefined
  let users = 0
  // To ask for holdings needs both servers, and a Redis that is away must not stop what PostgreSQL can do.
  const { onBack: _, handOvers: __, ...ports } = store
  const handOvers = hybridHandOvers(hybrid)
  return {
    ...ports,
    jobs: jobsOf(hybrid),
    workers: workersOf(hybrid),
    ...(handOvers !== undefined && { handOvers }),
    queues: {
      ...store.queues,
      async configure(queue, change, expectVersion) {
        const record = await store.queues.configure(queue, change, expectVersion)
        if (record !== null) await sync.changed(queue)
        return record
      },
    },
    wakeups: hybrid.bells,
    capabilities: capabilitiesOf(hybrid, parts),
    ...(store.inside !== undefined && {
      inside: (tx: unknown) => insideOf(hybrid, tx),
    }),
    upkeep: ({ isLeading }) => createUpkeep(hybrid, isLeading),
    mayLead: () => mayLead(hybrid),
    async start() {
      await store.start()
      if (users++ > 0) return
      hybrid.isStopped = false
      // A Redis that is away keeps nobody from starting.
      await hybrid.connect().catch((error: unknown) => {
        hybrid.runtime.logger.warn({ error }, 'Redis cannot be reached: work goes on with PostgreSQL alone')
      })
      stopListening = race.listen((queue) => hybrid.bells.ring(readyTopic(queue)))
      stopConfig = store.wakeups.listen([CONFIG_TOPIC], () => hybrid.refreshSoon())
      await hybrid.epochs.refresh().catch((error: unknown) => {
        hybrid.runtime.logger.warn({ error }, 'the dispatch of the queues could not be read yet')
      })
      await hybrid.watch.start()
      await hybrid.memory.start()
      await hybrid.liveStatus?.start()
    },
    async stop() {
      if (users > 0 && --users === 0) {
        stopListening?.()
        stopConfig?.()
        await hybrid.watch.stop()
        await hybrid.memory.stop()
        await hybrid.liveStatus?.stop()
        hybrid.stop()
        await hybrid.tellCounts()
        await race.stop()
      }
      await store.stop()
    },
  }
}

function jobsOf(hybrid: Hybrid): JobStore {
  const { store, sessions } = hybrid
  return {
    ...store.jobs,
    insert: (jobs) => insert(hybrid, jobs),
    claim: (request) => claim(hybrid, request),
    apply: (transitions) => applyAll(hybrid, transitions),
    async holdings(worker, claimNo) {
      const session = sessions.get(worker)
      if (session === undefined) return store.jobs.holdings(worker, claimNo)
      session.fencedClaimNo = Math.max(session.fencedClaimNo, claimNo)
      const marked = await store.jobs.holdings(worker, claimNo)
      const held = new Map<number, LeaseRef>()
      for (const ref of [...marked, ...session.refs(), ...(await tokensOf(hybrid, session))]) held.set(ref.lease, ref)
      return [...held.values()]
    },
  }
}

/**
 * A run that is settled inside a transaction of its handler is marked before, on a connection of ours: an adoption, and with
 * it the barrier of every queue, would else wait for that transaction to end.
 */
function insideOf(hybrid: Hybrid, tx: unknown): InsideTransaction {
  const { ledger, sessions } = hybrid
  const inside = ledger.inside(tx, (ref) => sessions.holding(ref)?.worker ?? null)
  return {
    ...inside,
    async apply(transitions) {
      for (const { jobId, guard } of transitions) {
        const { lease } = guard
        const session = lease === undefined ? null : sessions.holding({ lease })
        if (lease === undefined || session === null) continue
        const ageMs = session.inFlight.ageMs(lease, hybrid.threadMonoMs())
        // Not known to be marked: only the wait is not saved.
        await ledger.mark(session.worker, [{ jobId, lease, ageMs }]).catch(() => undefined)
      }
      return inside.apply(transitions)
    },
  }
}

/** What Redis says this session holds, of queues whose Redis can be asked; the others stay suspect. */
async function tokensOf(hybrid: Hybrid, session: Session): Promise<readonly LeaseRef[]> {
  const refs: LeaseRef[] = []
  for (const own of session.queues.values()) {
    const tag = hybrid.view.tag(own.name)
    const mayAsk = !hybrid.watch.isOpen(own.name) && own.c > 0
    const fields = tag !== null && mayAsk ? await heldFields(hybrid, session, own, tag) : undefined
    if (fields === undefined) {
      if (!own.hands.isKnown) session.suspect(own)
      continue
    }
    const held = own.notDone(fields).map(refOf)
    // Handed over unheard, and given back by who asks; then Redis has to forget them.
    if (held.some(({ lease }) => !session.inFlight.has(lease))) session.suspect(own)
    refs.push(...held)
  }
  return refs
}

function workersOf(hybrid: Hybrid): WorkerStore {
  const { store, ledger, sessions, runtime, times } = hybrid

  function keeperOf(session: () => Session, worker: WorkerId, inFlight: Session['inFlight']): Keeper {
    return new Keeper({
      ledger,
      worker,
      inFlight: inFlight.shared,
      monoMs: hybrid.threadMonoMs,
      timer: (delayMs, fire) => runtime.clock.timer(delayMs, fire),
      markAfterMs: times.markAfterMs,
      markEveryMs: times.markEveryMs,
      onLost: () => hybrid.bells.ring(controlTopic(session().worker)),
    })
  }

  return {
    ...store.workers,
    async register(worker) {
      await ledger.register(worker)
      if (sessions.get(worker.id) !== undefined) return
      const session: Session = new Session({
        worker,
        times: { monoMs: () => runtime.clock.monoMs(), lateMs: times.lateMs },
        keeperOf: (inFlight) => keeperOf(() => session, worker.id, inFlight),
      })
      for (const own of session.queues.values()) {
        own.changedTo(hybrid.view.row(own.name)?.epoch ?? 0)
        session.inFlight.setFailing(own.index, hybrid.watch.isOpen(own.name))
      }
      sessions.add(session)
      // Nothing is in flight yet, so nothing is to be said but the epoch. Should it fail, the first beat does it.
      await hybrid.epochs.refresh(worker.queues).catch(() => undefined)
      hybrid.watch.wake()
    },
    async beat(request) {
      const session = sessions.get(request.id)
      if (session === undefined) return store.workers.beat(request)
      if (session.isThreaded) session.keeper.again()
      session.isThreaded = false
      session.keeper.start()
      const { news, ...reply } = await session.keeper.beat(request)
      heard(hybrid, session, { ...reply, news })
      return reply
    },
    async declareDead(seen) {
      const dead = await store.workers.declareDead(seen)
      // Their tokens come due with what PostgreSQL knew of them, and not a pass of the reaper later. It does what fails here.
      if (dead.length > 0) {
        await bounded(runtime.clock, times.raceMs, 'reaping', reapAll(hybrid)).catch(() => undefined)
      }
      return dead
    },
    async retire(id) {
      const session = sessions.get(id)
      if (session !== undefined) {
        sessions.delete(id)
        // Nothing of it is left to a guess: what it holds is its own, and comes due with its end.
        await session.keeper.markAll().catch(() => undefined)
        session.keeper.stop()
      }
      await store.workers.retire(id)
      if (session === undefined) return
      await bounded(runtime.clock, times.raceMs, 'leaving', leave(hybrid, session)).catch(() => undefined)
    },
  }
}

/** A beat has answered, here or in the thread. */
export function heard(hybrid: Hybrid, session: Session, reply: BeatReply & Partial<Pick<KeeperReply, 'news'>>): void {
  const { news, lost = [] } = reply
  for (const ref of lost) session.settled(ref)
  // Flagged, marked as run here, and not run here.
  if (reply.cancels.some(({ lease }) => !session.inFlight.has(lease))) session.doubt()
  if (!reply.alive) session.end()
  if (news === undefined || !reply.alive) return
  hybrid.view.learn(news)
  if (news.serverChanged) void hybrid.epochs.refresh().catch(() => undefined) // told again with the next beat
}

function capabilitiesOf(hybrid: Hybrid, { threadOf }: HybridBackendParts): Capabilities {
  const { capabilities } = hybrid.store
  return {
    ...capabilities,
    strictPriority: false,
    orderedCalls: 2,
    orderedInserts: 1,
    settlesApart: 'always',
    threadLiveness:
      threadOf === undefined
        ? null
        : {
            module: '',
            options: null,
            ofLife(worker) {
              const session = hybrid.sessions.get(worker)
              if (session === undefined) return null
              session.isThreaded = true
              session.keeper.rest()
              return threadOf(session)
            },
            onEnd(worker) {
              hybrid.sessions.get(worker)?.end()
            },
            onReply(worker, reply) {
              const session = hybrid.sessions.get(worker)
              if (session !== undefined) heard(hybrid, session, reply)
            },
          },
  }
}
