// Who gets how many. Pools compete for the processes of a fleet, hosts share the workers of a pool. Both are filled
// like glasses: the emptiest first, each up to what it wants or may have, ties by name. The same question always has
// the same answer, and what is already somewhere stays there as far as the levels allow.

export interface Glass {
  readonly name: string
  /** Filled so far before anybody else gets anything. */
  readonly min: number
  readonly max: number
  /** What is there now: of two equal ones, who has more keeps more. */
  readonly has: number
}

/**
 * Whole numbers that sum up to `total`, each between its min and max, as equal as these allow. If the total is
 * less than all minima, or more than all maxima, the sum is what comes nearest to it and no max is broken.
 */
export function fill(total: number, glasses: readonly Glass[]): ReadonlyMap<string, number> {
  const order = [...glasses].sort((one, other) => (one.name < other.name ? -1 : 1))
  const floors = order.map(({ min, max }) => Math.max(0, Math.min(min, max)))
  const room = order.reduce((sum, { max }) => sum + Math.max(0, max), 0)
  const wanted = Math.max(0, Math.min(Math.floor(total), room))
  const isTight = wanted < sum(floors)
  const low = isTight ? order.map(() => 0) : floors
  const high = isTight ? floors : order.map(({ max }) => Math.max(0, max))
  const level = levelFor(wanted, low, high)
  const given = order.map((_, index) => within(level, low[index]!, high[index]!))
  // Those who stand exactly at the level and could go on share the rest: first who has more already.
  const spare = order
    .map(({ has, name }, index) => ({ index, has, name }))
    .filter(({ index }) => given[index]! < high[index]! && given[index]! <= level)
    .sort((one, other) => other.has - one.has || (one.name < other.name ? -1 : 1))
  let rest = wanted - sum(given)
  for (const { index } of spare) {
    if (rest <= 0) break
    given[index]! += 1
    rest -= 1
  }
  return new Map(order.map(({ name }, index) => [name, given[index]!]))
}

export interface HostShare {
  readonly id: string
  readonly min: number
  readonly max: number
  /** Its share until now. */
  readonly has: number
  /** Processes that drain there: they take room until they are gone. */
  readonly draining: number
}

/** The shares of the hosts that are there; one that vanished is not among them, so its share goes to the others. */
export function shareOut(total: number, hosts: readonly HostShare[]): ReadonlyMap<string, number> {
  const glasses = hosts.map(({ id, min, max, has, draining }) => {
    const room = Math.max(Math.min(has, max), max - draining)
    return { name: id, has, min: Math.min(min, room), max: room }
  })
  return fill(total, glasses)
}

export interface PoolAsk {
  readonly pool: string
  readonly from: number
  readonly want: number
  readonly min: number
  readonly draining: number
  /** May it be made to give workers back to others? Not within its cooldown. */
  readonly mayShrink: boolean
}

/**
 * What each pool gets of a fleet that may have so many processes. When there is enough, what it wants. When not,
 * the smaller askers are served first and the larger ones share what is left; a pool above its fair part gives
 * back as soon as its cooldown allows it, so nobody starves for longer than that.
 */
export function splitBudget(asks: readonly PoolAsk[], budget: number): ReadonlyMap<string, number> {
  const fair = fill(
    budget,
    asks.map(({ pool, from, want, min, mayShrink }) => {
      const floor = mayShrink ? min : Math.max(min, from)
      return { name: pool, has: from, min: Math.min(floor, want), max: want }
    }),
  )
  const parts = asks.map((ask) => ({ ...ask, part: fair.get(ask.pool) ?? 0 }))
  // First those who give back, then, when those processes are gone, those who grow into their room.
  const going = sum(parts.map(({ from, part, draining }) => draining + Math.max(0, from - part)))
  const kept = sum(parts.map(({ from, part }) => Math.min(from, part)))
  const glasses = parts.map(({ pool, from, part }) => {
    return { name: pool, has: from, min: Math.min(from, part), max: part }
  })
  return fill(Math.max(kept, budget - going), glasses)
}

/** The highest level at which all together hold no more than `wanted`. */
function levelFor(wanted: number, low: readonly number[], high: readonly number[]): number {
  let [from, until] = [0, Math.max(0, ...high)]
  while (from < until) {
    const middle = Math.ceil((from + until) / 2)
    const held = low.reduce((all, floor, index) => all + within(middle, floor, high[index]!), 0)
    if (held <= wanted) from = middle
    else until = middle - 1
  }
  return from
}

function within(level: number, low: number, high: number): number {
  return Math.max(low, Math.min(level, high))
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}
