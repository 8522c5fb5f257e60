// The share of the lower lanes, kept per queue by this process: how many starts each lane has watched go by, and
// so how many starts of the next claim are theirs (sql/60_claim.sql). Refines core/priority.ts `pickLane`, which orders the reply.
import { laneOf, pickLane } from '../../core/priority.ts'
import type { LaneBounds, PassedOver } from '../../core/priority.ts'

export interface LaneSettings {
  readonly lanes: LaneBounds
  readonly lowerLaneShare: number
}

export class LaneShare {
  readonly #passed: PassedOver = [0, 0, 0]

  /** Starts that the normal and the low lane have watched go by. */
  get passed(): readonly [normal: number, low: number] {
    return [this.#passed[1], this.#passed[2]]
  }

  /** Puts claimed jobs into the order of their starts. `isFull`: others may wait behind them. */
  order<Claimed extends { readonly job: { readonly priority: number }; readonly seq: number }>(
    claimed: readonly Claimed[],
    { lanes, lowerLaneShare }: LaneSettings,
    isFull: boolean,
  ): readonly Claimed[] {
    const waiting: [Claimed[], Claimed[], Claimed[]] = [[], [], []]
    for (const one of claimed) waiting[laneOf(one.job.priority, lanes)].push(one)
    for (const line of waiting) line.sort((a, b) => a.job.priority - b.job.priority || a.seq - b.seq)
    const used = waiting.filter((line) => line.length > 0)
    if (used.length <= 1) {
      this.#count(waiting, claimed.length, isFull)
      return used[0] ?? []
    }
    const ordered: Claimed[] = []
    const next = [0, 0, 0]
    for (;;) {
      const has = waiting.map((line, lane) => next[lane]! < line.length) as [boolean, boolean, boolean] // three lanes
      const before = [...this.#passed] as const
      const lane = pickLane(has, this.#passed, lowerLaneShare)
      if (lane === null) {
        for (const other of [0, 1, 2] as const) this.#passed[other] = isFull ? before[other] : 0
        return ordered
      }
      // A lane with nothing left in this reply may have more in the store, and watches this start go by.
      if (isFull) for (const other of [0, 1, 2] as const) if (!has[other]) this.#passed[other] = before[other] + 1
      ordered.push(waiting[lane][next[lane]!]!)
      next[lane]! += 1
    }
  }

  #count(waiting: readonly (readonly unknown[])[], starts: number, isFull: boolean): void {
    for (const lane of [0, 1, 2] as const) {
      // A claim that came back short has emptied every lane.
      if (waiting[lane]!.length > 0 || !isFull) this.#passed[lane] = 0
      else this.#passed[lane] += starts
    }
  }
}
