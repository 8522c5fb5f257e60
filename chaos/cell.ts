// The result of one cell. The shape is stable; fields are only ever added.
import type { Figures } from './figures.ts'
import type { Promised } from './promise.ts'
import type { Backend } from './system.ts'

export interface Cell {
  readonly scenario: string
  readonly system: string
  readonly backend: Backend
  /** Acknowledged enqueues. */
  readonly enqueued: number
  /** Enqueues that failed; their callers were told so. */
  readonly refused: number
  /** Due by the offered rate, and not asked for: too many enqueues had no answer yet. Absent: none. */
  readonly withheld?: number
  /** Acknowledged, and a handler came to its end. */
  readonly completed: number
  /** Acknowledged, not completed, no longer known to the system, and not given up. */
  readonly lost: number
  /** The same, of jobs that the contract of this store gives up under this fault: it had not kept them, and could not have. */
  readonly givenUp: number
  /** Acknowledged, not completed, and still in the system: only a time-out of its own stands before it. */
  readonly stuck: number
  readonly unexpected: number
  /** Results applied although another run had taken the place. Null: the system keeps no record that shows it. */
  readonly stale: number | null
  /** Started more than once. */
  readonly duplicated: number
  /** Of those, the ones whose process had died, was away for longer than its ttl, or whose store forgot it. */
  readonly duplicatesAllowed: number
  /** Two runs at once, the first of which still owned the job. */
  readonly overlaps: number
  /** Jobs of a group that started too early. Null: the system was given no groups. */
  readonly disorder: number | null
  /** The most jobs of one group that were there at once. Absent: the system was given no groups. */
  readonly groupDepth?: number
  /**
   * Batches that were gone, not finished, not whole, or whose counters or callbacks were wrong, and ticks of a schedule that
   * came twice or not. Null: not played.
   */
  readonly miscounted: number | null
  readonly wrongTicks: number | null
  /**
   * To the last restart of an interrupted run; where none was interrupted, to the first start of a job made after the
   * fault. Null: never, or the scenario stops nothing.
   */
  readonly recoverySeconds: number | null
  /** Ends per second from the fault to the end of the load, by those before it. */
  readonly throughputRatio: number | null
  /** To the promised share of the offered rate for the rest of the load. Null: not asked for, or never. */
  readonly steadySeconds: number | null
  /**
   * From the end of the fault until every worker that was alive at the end of the load had begun a job. Absent: one never did,
   * or nothing was offered.
   */
  readonly allTakingSeconds?: number
  /** Processes that ended by themselves. */
  readonly quits: number
  /** Null: the default of the system. */
  readonly ttlSeconds: number | null
  /** By the first producer. */
  readonly offeredPerSecond: number
  /** Null: a peer, which has promised nothing. */
  readonly promised: Promised | null
  /** As promised. Peers promise nothing here: of them it says whether nothing was lost, stuck or run twice. */
  readonly ok: boolean
  readonly note: string
  /** What only this scenario measures. */
  readonly figures?: Figures
  readonly seconds: number
}
