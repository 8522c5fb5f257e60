// Runs that have ended in a pool, by queue, since its supervisor started: what its processes tell, and what those told that
// are gone. It never falls, so two looks at it are a rate. What a process did after its last word is not in it.

type ByQueue = Readonly<Record<string, number>>

/** Of the queues of many releases, should somebody rename them with every one. */
const QUEUES_MAX = 1_000

export class EndedRuns {
  readonly #gone = new Map<string, number>()

  keep(ended: ByQueue | undefined): void {
    add(this.#gone, ended)
  }

  sum(living: readonly (ByQueue | undefined)[]): ByQueue {
    const all = new Map(this.#gone)
    for (const ended of living) add(all, ended)
    return Object.fromEntries(all)
  }
}

function add(sums: Map<string, number>, ended: ByQueue | undefined): void {
  for (const [queue, count] of Object.entries(ended ?? {})) {
    if (sums.has(queue) || sums.size < QUEUES_MAX) sums.set(queue, (sums.get(queue) ?? 0) + count)
  }
}
