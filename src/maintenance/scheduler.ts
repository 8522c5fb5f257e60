// Fires the ticks of recurring jobs. core/schedule.ts decides which ticks; one compare-and-set per schedule
// makes each tick one job, however many schedulers there are.
import type { JobId, NewJob } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { decideTicks } from '../core/schedule.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { ScheduleRecord } from '../store/schedule-store.ts'
import type { MaintenanceOptions } from './options.ts'

export function createScheduler(options: MaintenanceOptions, isLeading: () => boolean): Service {
  const { runtime, backend, periodMs } = options
  const { logger } = runtime

  async function pass(): Promise<number> {
    if (!isLeading()) return periodMs
    const call = backend.schedules.due(LIMITS.maintenanceBatchMax)
    const { nowMs, schedules, nextDueInMs } = await call
    for (const schedule of schedules) {
      // One bad schedule must not keep the others from firing.
      await fire(schedule, nowMs).catch((error: unknown) => {
        logger.error({ schedule: schedule.name, error }, 'a schedule could not be fired; it will be tried again')
      })
    }
    if (schedules.length >= LIMITS.maintenanceBatchMax) return 0
    return nextDueInMs === null ? periodMs : Math.min(Math.ceil(nextDueInMs), periodMs)
  }

  async function fire(schedule: ScheduleRecord, nowMs: number): Promise<void> {
    const { name, recurrence, nextRunMs: dueMs, misfire, overlap } = schedule
    if (dueMs === null) return
    const { ticks, missed, nextRunMs } = decideTicks({ recurrence, dueMs, nowMs, misfire })
    // Where runs must not overlap, made-up ticks would: only the newest is handed over.
    const fired = overlap === 'skip' ? ticks.slice(-1) : ticks
    const jobs = fired.map((tickMs) => jobOf(schedule, tickMs, runtime.newId() as JobId)) // minted here
    runtime.failpoint('scheduler.before-fire')
    const request = { schedule: name, expectedRunMs: dueMs, nextRunMs, jobs, unlessLive: overlap === 'skip' }
    const reply = await backend.schedules.fire(request)
    if (reply === 'fired') for (const job of jobs) options.probe?.enqueued(job, job.id, false)
    if (missed > 0) logger.warn({ schedule: name, missed, fired: fired.length, reply }, 'a schedule missed ticks')
  }

  return createLoop({ name: 'scheduler', runtime, pass })
}

export function jobOf(schedule: ScheduleRecord, tickMs: number, id: JobId): NewJob {
  return {
    id,
    queue: schedule.queue,
    name: schedule.job,
    payload: schedule.payload,
    timeoutMs: schedule.timeoutMs,
    schedule: { name: schedule.name, tickMs },
    tags: schedule.tags,
    ...(schedule.meta !== null && { meta: schedule.meta }),
    ...(schedule.group !== null && { group: schedule.group }),
    ...(schedule.limitKey !== null && { limitKey: schedule.limitKey }),
    ...(schedule.priority !== null && { priority: schedule.priority }),
    ...(schedule.maxAttempts !== null && { maxAttempts: schedule.maxAttempts }),
  }
}
