// From what was seen of a pool to what it asks of the fleet: by the rules, or because somebody forces it.
import { SCALING } from '../core/limits.ts'
import type { FleetAsk, PoolPlace } from '../core/scaling-fleet.ts'
import type { ScalingLimits } from '../core/scaling-limits.ts'
import { actionOf, decidePool } from '../core/scaling-pool.ts'
import { fill } from '../core/scaling-share.ts'
import { decideScale, isCooling } from '../core/scaling.ts'
import type { ScaleMetrics, ScaleStep } from '../core/scaling.ts'
import type { PlanNote } from './plan-notes.ts'
import type { ForceRequest } from './scaling-requests.ts'
import type { PoolSight } from './scaling-sight.ts'

export interface AskContext {
  readonly plan: PlanNote | null
  readonly steps: readonly ScaleStep[]
  readonly limitsOf: (queue: string) => ScalingLimits
  readonly nowMs: number
}

export interface PoolAnswer {
  readonly ask: FleetAsk
  /** By queue; undefined: its function, if it has one, did not fail. */
  readonly errors: ReadonlyMap<string, unknown>
}

export function askPool(pool: PoolSight, metrics: ReadonlyMap<string, ScaleMetrics>, context: AskContext): PoolAnswer {
  const { plan, steps, nowMs } = context
  const from = sizeOf(pool, plan)
  const errors = new Map<string, unknown>()
  const limits = pool.queues.map((queue) => context.limitsOf(queue))
  const decisions = pool.queues.map((queue, index) => {
    const own = { queue, from, limits: limits[index]!, history: steps, nowMs, metrics: metrics.get(queue) ?? null }
    const { error, ...decision } = decideScale(own)
    errors.set(queue, error)
    return { queue, ...decision }
  })
  const decision = decidePool(from, decisions, boundsOf(pool))
  const mayShrink = limits.every((one) => one.enabled && !isCooling(one, steps, 'down', nowMs))
  return { ask: { pool: pool.name, decision, mayShrink, places: placesOf(pool, plan) }, errors }
}

export type ForcedAsks =
  | { readonly ok: true; readonly pools: readonly string[]; readonly asks: readonly FleetAsk[] }
  | { readonly ok: false; readonly message: string }

export interface ForceContext {
  readonly planOf: (pool: string) => PlanNote | null
  readonly limitsOf: (queue: string) => ScalingLimits
}

/** Pools that are not meant keep what they have. */
export function forcedAsks(request: ForceRequest, pools: readonly PoolSight[], context: ForceContext): ForcedAsks {
  const { target, to, beyondLimits } = request
  const isMeant = (pool: PoolSight) =>
    'queue' in target ? pool.queues.includes(target.queue) : pool.name === target.pool
  const meant = pools.filter(isMeant)
  if (meant.length === 0) return { ok: false, message: refusal(target, pools) }
  const glasses = meant.map((pool) => {
    const { min, max } = beyondLimits ? boundsOf(pool) : forceLimits(pool, context.limitsOf)
    return { name: pool.name, min, max, has: sizeOf(pool, context.planOf(pool.name)) }
  })
  const floor = glasses.reduce((sum, { min }) => sum + min, 0)
  const wanted = fill(Math.max(to, floor), glasses)
  const asks = pools.map((pool): FleetAsk => {
    const plan = context.planOf(pool.name)
    const from = sizeOf(pool, plan)
    const size = wanted.get(pool.name) ?? from
    const queue = 'queue' in target ? target.queue : null
    const cut = meant.length === 1 && size !== to ? [`its limits make ${size} of ${to}`] : []
    const reasons = [`${request.by} forces ${to}: ${request.reason}`, ...cut]
    const decision = { queue, from, to: size, action: actionOf(from, size), reasons }
    return { pool: pool.name, mayShrink: false, places: placesOf(pool, plan), decision }
  })
  return { ok: true, pools: meant.map(({ name }) => name), asks }
}

function refusal(target: ForceRequest['target'], pools: readonly PoolSight[]): string {
  const known = pools.map(({ name }) => name).join(', ') || 'none'
  const what = 'queue' in target ? `serves queue ${target.queue}` : `is called ${target.pool}`
  return `no pool that can be scaled ${what}; there are: ${known}. A pool with min = max, or one set by hand, has a fixed size`
}

/** Of the plan, or what the hosts have set out to run: a pool that was just started is at its minimum. */
function sizeOf({ hosts }: PoolSight, plan: PlanNote | null): number {
  return plan?.total ?? hosts.reduce((sum, { wanted }) => sum + wanted, 0)
}

function placesOf({ hosts }: PoolSight, plan: PlanNote | null): readonly PoolPlace[] {
  return hosts.map(({ wanted, ...host }) => ({ ...host, has: plan === null ? wanted : (plan.shares[host.id] ?? 0) }))
}

function boundsOf({ hosts }: PoolSight): { readonly min: number; readonly max: number } {
  const sum = (what: 'min' | 'max') => hosts.reduce((all, host) => all + host[what], 0)
  return { min: sum('min'), max: Math.min(sum('max'), SCALING.workersMax) }
}

function forceLimits(pool: PoolSight, limitsOf: (queue: string) => ScalingLimits) {
  const bounds = boundsOf(pool)
  const limits = pool.queues.map(limitsOf)
  const max = Math.max(bounds.min, Math.min(bounds.max, Math.max(0, ...limits.map((one) => one.max))))
  return { min: Math.min(max, Math.max(bounds.min, ...limits.map((one) => one.min))), max }
}
