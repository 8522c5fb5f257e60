// All pools of a fleet at once: what each asked for, cut to what the fleet can hold, and placed on its hosts.
import { actionOf } from './scaling-pool.ts'
import type { PoolDecision } from './scaling-pool.ts'
import { shareOut, splitBudget } from './scaling-share.ts'

export interface FleetHost {
  readonly id: string
  /** Processes that it may run for the pools asked about. */
  readonly room: number
}

export interface PoolPlace {
  readonly id: string
  readonly min: number
  readonly max: number
  readonly has: number
  readonly draining: number
  /** Nothing more can be started there now. */
  readonly isStuck: boolean
}

export interface FleetAsk {
  readonly pool: string
  readonly decision: PoolDecision
  readonly mayShrink: boolean
  readonly places: readonly PoolPlace[]
}

export interface FleetAnswer {
  readonly pool: string
  readonly decision: PoolDecision
  /** Sum up to `decision.to`. */
  readonly shares: ReadonlyMap<string, number>
}

export function decideFleet(asks: readonly FleetAsk[], hosts: readonly FleetHost[]): readonly FleetAnswer[] {
  const budget = hosts.reduce((sum, { room }) => sum + room, 0)
  const granted = splitBudget(
    asks.map(({ pool, decision, mayShrink, places }) => ({
      pool,
      from: decision.from,
      want: decision.to,
      min: total(places, 'min'),
      draining: total(places, 'draining'),
      mayShrink,
    })),
    budget,
  )
  const free = new Map(hosts.map(({ id, room }) => [id, room]))
  // What every pool must have there is kept free for it, and those with the fewest hosts choose first.
  const reserved = new Map(hosts.map(({ id }) => [id, asks.reduce((sum, { places }) => sum + minAt(places, id), 0)]))
  const order = [...asks].sort((one, other) => {
    return one.places.length - other.places.length || (one.pool < other.pool ? -1 : 1)
  })
  const answers = order.map(({ pool, decision, places }): FleetAnswer => {
    const room = places.map((place) => {
      const left = (free.get(place.id) ?? 0) - (reserved.get(place.id) ?? 0) + place.min
      const most = place.isStuck ? Math.max(place.has, place.min) : place.max
      return { ...place, max: Math.max(0, Math.min(most, left)) }
    })
    const shares = shareOut(granted.get(pool) ?? 0, room)
    for (const { id, min } of places) {
      free.set(id, (free.get(id) ?? 0) - (shares.get(id) ?? 0))
      reserved.set(id, (reserved.get(id) ?? 0) - min)
    }
    return {
      pool,
      shares,
      decision: cutTo(
        [...shares.values()].reduce((all, one) => all + one, 0),
        decision,
        budget,
      ),
    }
  })
  return answers.sort((one, other) => (one.pool < other.pool ? -1 : 1))
}

function cutTo(to: number, decision: PoolDecision, budget: number): PoolDecision {
  if (to === decision.to) return decision
  const { from, queue, reasons } = decision
  const room = `the hosts have room for ${budget} processes of all pools`
  return { queue, from, to, action: actionOf(from, to), reasons: [...reasons, room] }
}

function total(places: readonly PoolPlace[], what: 'min' | 'draining'): number {
  return places.reduce((sum, place) => sum + place[what], 0)
}

function minAt(places: readonly PoolPlace[], id: string): number {
  return places.find((place) => place.id === id)?.min ?? 0
}
