// The ready jobs of one queue: three lanes, exact priority inside each, and the share of the lower lanes.
import { laneOf, pickLane } from '../../core/priority.ts'
import type { LaneBounds, PassedOver } from '../../core/priority.ts'
import { PriorityLine } from './priority-line.ts'
import type { JobRecord } from './record.ts'

export class ReadyQueue {
  readonly #lanes = [new PriorityLine(), new PriorityLine(), new PriorityLine()] as const
  readonly #passed: PassedOver = [0, 0, 0]
  #bounds: LaneBounds

  constructor(bounds: LaneBounds) {
    this.#bounds = bounds
  }

  add(record: JobRecord): void {
    this.#lanes[laneOf(record.priority, this.#bounds)].add(record)
  }

  remove(record: JobRecord): void {
    this.#lanes[laneOf(record.priority, this.#bounds)].remove(record)
  }

  /** The job that starts next, taken out of the line; null when there is none. */
  take(share: number): JobRecord | null {
    const [high, normal, low] = this.#lanes
    const lane = pickLane([!high.isEmpty, !normal.isEmpty, !low.isEmpty], this.#passed, share)
    if (lane === null) return null
    const record = this.#lanes[lane].first()
    if (record !== null) this.#lanes[lane].remove(record)
    return record
  }

  depths(): [high: number, normal: number, low: number] {
    const [high, normal, low] = this.#lanes
    return [high.size, normal.size, low.size]
  }

  *records(): Iterable<JobRecord> {
    for (const lane of this.#lanes) yield* lane.records()
  }

  setBounds(bounds: LaneBounds): void {
    if (bounds[0] === this.#bounds[0] && bounds[1] === this.#bounds[1]) return
    const records = [...this.records()]
    for (const record of records) this.remove(record)
    this.#bounds = bounds
    for (const record of records) this.add(record)
  }

  oldestReadyAtMs(): number | null {
    let oldest: number | null = null
    for (const lane of this.#lanes) {
      for (const { readyAtMs } of lane.heads()) if (oldest === null || readyAtMs < oldest) oldest = readyAtMs
    }
    return oldest
  }
}
