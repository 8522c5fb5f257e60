// Recurring jobs. A tick is fired by one compare-and-set on (schedule, tick) that inserts its jobs in
// the same atom, so many schedulers produce one job per tick.
import type { Recurrence } from '../core/cron.ts'
import type { JobId, NewJob } from '../core/job.ts'
import type { JsonText } from '../core/json.ts'
import type { MisfirePolicy, OverlapPolicy } from '../core/schedule.ts'

export interface ScheduleStore {
  /** Creates or changes. A changed recurrence replaces `nextRunMs`; an unchanged one keeps its place. */
  upsert(schedules: readonly ScheduleSettings[]): Promise<void>
  get(name: string): Promise<ScheduleRecord | null>
  list(): Promise<readonly ScheduleRecord[]>
  remove(name: string): Promise<boolean>
  setEnabled(name: string, enabled: boolean, nextRunMs: number | null): Promise<boolean>
  /** Enabled schedules whose next run is not after the clock of the store, and that clock; limit 0 asks for the clock alone. */
  due(limit: number): Promise<DueSchedules>
  fire(request: FireRequest): Promise<FireReply>
}

export interface DueSchedules {
  readonly nowMs: number
  readonly schedules: readonly ScheduleRecord[]
  /** Until the next tick of the enabled schedules that are not due; null when there is none. */
  readonly nextDueInMs: number | null
}

export interface ScheduleSettings {
  readonly name: string
  readonly recurrence: Recurrence
  readonly job: string
  readonly queue: string
  readonly payload: JsonText
  readonly priority: number | null
  readonly maxAttempts: number | null
  readonly timeoutMs: number
  readonly tags: readonly string[]
  readonly meta: JsonText | null
  readonly group: string | null
  readonly limitKey: string | null
  readonly misfire: MisfirePolicy
  readonly overlap: OverlapPolicy
  readonly enabled: boolean
  /** Used when the schedule is new or its recurrence changed. */
  readonly firstRunMs: number | null
}

export interface ScheduleRecord extends Omit<ScheduleSettings, 'firstRunMs'> {
  readonly nextRunMs: number | null
  readonly lastRunMs: number | null
  readonly lastJob: JobId | null
  readonly createdAtMs: number
  readonly version: number
}

export interface FireRequest {
  readonly schedule: string
  /** The stored next run that this decision was made for. */
  readonly expectedRunMs: number
  readonly nextRunMs: number | null
  /** One per tick to fire, oldest first; may be empty (all ticks skipped). */
  readonly jobs: readonly NewJob[]
  /** Overlap policy `skip`: insert nothing while the last job of this schedule is live. */
  readonly unlessLive: boolean
}

/** `stale`: another scheduler had this tick. `skipped`: time moved on, nothing was inserted. */
export type FireReply = 'fired' | 'skipped' | 'stale'
