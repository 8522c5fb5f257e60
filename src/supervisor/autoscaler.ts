// The autoscaler at work. One process of the fleet leads; it looks at queues and workers, asks the rules of
// src/core, and writes what they answer as plans that every supervisor follows. It starts and stops nothing itself.
//
// A look that fails changes nothing. The first look of a leader, and the first after a time without looks, only
// remembers: there is nothing to compare with, and hosts that are still coming back would be taken for lost.
import { DEFAULTS, SCALING } from '../core/limits.ts'
import { decideFleet } from '../core/scaling-fleet.ts'
import type { FleetAnswer, FleetAsk } from '../core/scaling-fleet.ts'
import { observe } from '../core/scaling-rates.ts'
import type { Rates } from '../core/scaling-rates.ts'
import type { ScaleMetrics } from '../core/scaling.ts'
import { createLeader } from '../maintenance/leader.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { Backend } from '../store/ports.ts'
import { askPool, forcedAsks } from './scaling-asks.ts'
import type { ForcedAsks } from './scaling-asks.ts'
import { autoscaleSettings } from './autoscale-options.ts'
import type { AutoscaleOptions } from './autoscale-options.ts'
import { createFleet } from './fleet.ts'
import { PlanKeeper } from './plan-keeper.ts'
import { answerRequest, forceResult, forceScale, readRequests } from './scaling-requests.ts'
import type { ForceOptions, ForceRequest, ForceResult, ForceTarget } from './scaling-requests.ts'
import { countsByQueue, fleetSight, sightOf } from './scaling-sight.ts'
import type { FleetSight } from './scaling-sight.ts'
import { changeOf, logChange } from './scaling-steps.ts'
import { readSwitches } from './scaling-switch.ts'
import { readStoreTime } from './store-time.ts'
import type { StoreTime } from './store-time.ts'

export interface AutoscalerParts {
  readonly runtime: Runtime
  readonly backend: Pick<Backend, 'notes' | 'query' | 'queues' | 'workers' | 'schedules'>
  /** Of other connections, for their queues alone. */
  readonly others?: readonly Pick<Backend, 'query' | 'queues'>[]
  readonly options?: AutoscaleOptions
  /** Processes that a supervisor may run, over all its pools, which does not say so itself. Default 20. */
  readonly processesMax?: number
  readonly leaderTtlMs?: number
}

export interface Autoscaler extends Service {
  isLeading(): boolean
  /** Past the cooldown, not past the limits unless it is said. Resolves when the leader, wherever it is, has obeyed. */
  forceScale(target: string | ForceTarget, to: number, reason: string, options?: ForceOptions): Promise<ForceResult>
}

/** All that belongs to one time of leading; the next one begins with what is in the store. */
interface Lead {
  readonly term: number
  readonly time: StoreTime
  readonly keeper: PlanKeeper
  readonly rates: Map<string, Rates>
  /** Queues whose own function failed last time, so that it is said once. */
  readonly failing: Set<string>
  lookedMs: number
  nextLookMs: number
}

const STORE_TIMEOUT_MS = 10_000
/** A look may take a tenth of the time; a store with millions of ready jobs is asked less often. */
const LOOK_SHARE = 10
const FORCE_WAIT_MS = 15_000

export function createAutoscaler(parts: AutoscalerParts): Autoscaler {
  const { runtime, backend, processesMax = DEFAULTS.processes } = parts
  const { leaderTtlMs = DEFAULTS.leaderTtlMs, others = [] } = parts
  const stores = [backend, ...others]
  const { clock, logger } = runtime
  const { notes } = backend
  const settings = autoscaleSettings(parts.options)
  const fleet = createFleet({ notes, runtime })
  const leader = createLeader({ runtime, workers: backend.workers, role: 'autoscaler', ttlMs: leaderTtlMs })
  const periodMs = Math.min(SCALING.requestMs, settings.intervalMs)
  let lead: Lead | null = null

  const call = <Value>(what: string, reply: Promise<Value>): Promise<Value> =>
    bounded(clock, STORE_TIMEOUT_MS, what, reply)

  async function pass(): Promise<number> {
    if (!leader.isLeading()) {
      lead = null
      return periodMs
    }
    if (lead?.term !== leader.term()) lead = await call('taking over the plans', takeOver(leader.term()))
    await call('obeying requests', obey(lead))
    const startedMs = clock.monoMs()
    if (startedMs >= lead.nextLookMs) {
      lead.nextLookMs = startedMs + settings.intervalMs
      await look(lead)
      const slowMs = Math.min(LOOK_SHARE * (clock.monoMs() - startedMs), SCALING.sampleMaxMs)
      lead.nextLookMs = Math.max(lead.nextLookMs, startedMs + slowMs)
    }
    await call('writing history', lead.keeper.flush())
    return periodMs
  }

  async function takeOver(term: number): Promise<Lead> {
    const time = await readStoreTime(backend, clock)
    const keeper = await PlanKeeper.takeOver({ notes, runtime, time, term, leaderTtlMs })
    logger.info({ term }, 'leads the autoscaler')
    const idle = { lookedMs: -Infinity, nextLookMs: -Infinity }
    return { term, time, keeper, rates: new Map(), failing: new Set(), ...idle }
  }

  async function look(own: Lead): Promise<void> {
    const counting = Promise.all(stores.map(({ query }) => query.counts()))
    const reads = Promise.all([fleet.list(), counting, listQueues(), readSwitches(notes)])
    const [records, counts, queues, switches] = await call('looking at queues and workers', reads)
    const nowMs = own.time.nowMs()
    const monoMs = clock.monoMs()
    const isFirst = monoMs - own.lookedMs > SCALING.staleMs
    own.lookedMs = monoMs
    const sight = fleetSight(
      records,
      queues.map(({ name }) => name),
    )
    const byQueue = countsByQueue(counts)
    const paused = new Set(queues.filter((one) => one.paused).map(({ name }) => name))
    const seen = new Map<string, ReadonlyMap<string, ScaleMetrics>>()
    const asks: FleetAsk[] = []
    for (const pool of scalable(sight)) {
      const observed = observe(
        own.rates.get(pool.name) ?? null,
        sightOf(pool, byQueue, paused, nowMs),
        settings.smoothingMs,
      )
      own.rates.set(pool.name, observed.rates)
      seen.set(pool.name, observed.metrics)
      const { ask, errors } = askPool(pool, observed.metrics, {
        plan: own.keeper.get(pool.name),
        steps: own.keeper.steps(pool.name),
        limitsOf: (queue) => {
          const limits = settings.limitsOf(queue)
          return switches.isOff(queue) ? { ...limits, enabled: false } : limits
        },
        nowMs,
      })
      tellErrors(own, errors)
      asks.push(ask)
    }
    for (const name of own.rates.keys()) if (!seen.has(name)) own.rates.delete(name)
    for (const answer of decideFleet(asks, roomOf(sight))) {
      const { decision, pool } = answer
      if (isFirst && own.keeper.get(pool) !== null) continue
      await save(own, answer, { metrics: seen.get(pool)?.get(decision.queue ?? '') ?? null })
    }
  }

  async function listQueues() {
    return (await Promise.all(stores.map((store) => store.queues.list()))).flat()
  }

  async function obey(own: Lead): Promise<void> {
    const requests = await readRequests(notes)
    if (requests.length === 0) return
    const [records, queues] = await Promise.all([fleet.list(), listQueues()])
    const sight = fleetSight(
      records,
      queues.map(({ name }) => name),
    )
    for (const request of requests) {
      const result = await force(own, sight, request)
      if (result === null) continue
      logger.info(
        { ...request.target, to: request.to, by: request.by, reason: request.reason, result },
        'scaling was forced',
      )
      await answerRequest(notes, request, result)
    }
  }

  /** Null: another one wrote at the same time; it is tried again. */
  async function force(own: Lead, sight: FleetSight, request: ForceRequest): Promise<ForceResult | null> {
    const forced: ForcedAsks = forcedAsks(request, scalable(sight), {
      planOf: (pool) => own.keeper.get(pool),
      limitsOf: (queue) => settings.limitsOf(queue),
    })
    if (!forced.ok) return forced
    const answers = decideFleet(forced.asks, roomOf(sight)).filter(({ pool }) => forced.pools.includes(pool))
    for (const answer of answers) {
      const isDone = own.keeper.get(answer.pool)?.recent.some(({ requestId }) => requestId === request.id)
      if (!isDone && !(await save(own, answer, { metrics: null, request }))) return null
    }
    return { ok: true, pools: answers.map(({ pool, decision: { from, to } }) => ({ pool, from, to })) }
  }

  async function save(
    own: Lead,
    answer: FleetAnswer,
    about: { readonly metrics: ScaleMetrics | null; readonly request?: ForceRequest },
  ): Promise<boolean> {
    const change = changeOf(own.keeper.get(answer.pool), answer, {
      ...about,
      nowMs: own.time.nowMs(),
      newId: runtime.newId,
    })
    if (change === null) return true
    const isSaved = await call('writing a plan', own.keeper.save(change))
    if (isSaved) logChange(logger, change, answer)
    return isSaved
  }

  function tellErrors(own: Lead, errors: ReadonlyMap<string, unknown>): void {
    for (const [queue, error] of errors) {
      if (error === undefined) own.failing.delete(queue)
      else if (!own.failing.has(queue)) {
        own.failing.add(queue)
        logger.error({ queue, error }, 'the function that decides about this queue failed; its size stays')
      }
    }
  }

  function roomOf({ hosts }: FleetSight): readonly { readonly id: string; readonly room: number }[] {
    return hosts.map(({ id, fixed, processesMax: own }) => ({ id, room: Math.max(0, (own ?? processesMax) - fixed) }))
  }

  const loop = createLoop({ name: 'autoscaler', runtime, pass })
  return {
    async start() {
      await leader.start()
      await loop.start()
    },
    async stop() {
      await loop.stop()
      await leader.stop()
    },
    isLeading: () => leader.isLeading(),
    async forceScale(target, to, reason, options) {
      const meant = typeof target === 'string' ? { queue: target } : target
      const request = await forceScale({ notes, runtime }, meant, to, reason, options)
      if (leader.isLeading()) loop.wake()
      return await forceResult({ notes, runtime }, request, FORCE_WAIT_MS)
    },
  }
}

/** Pools whose size may change, as many as there may be. */
function scalable({ pools }: FleetSight): FleetSight['pools'] {
  return pools.filter(({ isFixed }) => !isFixed).slice(0, SCALING.poolsMax)
}
