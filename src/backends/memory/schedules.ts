// Schedules of the memory backend. A tick belongs to whoever finds `nextRunMs` unchanged.
import { isFinal } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import type {
  DueSchedules,
  FireReply,
  FireRequest,
  ScheduleRecord,
  ScheduleSettings,
  ScheduleStore,
} from '../../store/schedule-store.ts'
import { insertJobs } from './insert.ts'
import type { World } from './world.ts'

export function memorySchedules(world: World): ScheduleStore {
  return {
    upsert: (schedules) => world.run(() => schedules.forEach((settings) => upsert(world, settings))),
    get: (name) => world.run(() => world.schedules.get(name) ?? null),
    list: () => world.run(() => [...world.schedules.values()]),
    remove: (name) => world.run(() => world.schedules.delete(name)),
    setEnabled: (name, enabled, nextRunMs) =>
      world.run(() => {
        const found = world.schedules.get(name)
        if (found !== undefined) change(world, found, { enabled, nextRunMs })
        return found !== undefined
      }),
    due: (limit) => world.run(() => listDue(world, limit)),
    fire: (request) => world.run(() => fire(world, request)),
  }
}

function upsert(world: World, { firstRunMs, ...settings }: ScheduleSettings): void {
  const found = world.schedules.get(settings.name)
  if (found === undefined) {
    const fresh = { nextRunMs: firstRunMs, lastRunMs: null, lastJob: null, createdAtMs: world.nowMs(), version: 1 }
    world.schedules.set(settings.name, { ...settings, ...fresh })
    return
  }
  const sameRecurrence = JSON.stringify(found.recurrence) === JSON.stringify(settings.recurrence)
  change(world, found, sameRecurrence ? settings : { ...settings, nextRunMs: firstRunMs })
}

function change(world: World, found: ScheduleRecord, changes: Partial<ScheduleRecord>): void {
  world.schedules.set(found.name, { ...found, ...changes, version: found.version + 1 })
}

function listDue(world: World, limit: number): DueSchedules {
  const nowMs = world.nowMs()
  const schedules: ScheduleRecord[] = []
  let nextRunMs = Infinity
  for (const schedule of world.schedules.values()) {
    if (!schedule.enabled || schedule.nextRunMs === null) continue
    if (schedule.nextRunMs > nowMs) nextRunMs = Math.min(nextRunMs, schedule.nextRunMs)
    else if (schedules.length < limit) schedules.push(schedule)
  }
  return { nowMs, schedules, nextDueInMs: nextRunMs === Infinity ? null : nextRunMs - nowMs }
}

function fire(world: World, request: FireRequest): FireReply {
  const found = world.schedules.get(request.schedule)
  if (found === undefined || !found.enabled) return 'stale'
  if (found.nextRunMs !== request.expectedRunMs && !isPlanted('fire-without-compare')) return 'stale'
  const last = found.lastJob === null ? undefined : world.jobs.get(found.lastJob)
  const overlaps = request.unlessLive && last !== undefined && !isFinal(last.status)
  const newest = request.jobs.at(-1)
  if (overlaps || newest === undefined) {
    change(world, found, { nextRunMs: request.nextRunMs })
    return 'skipped'
  }
  insertJobs(world, request.jobs)
  const lastRunMs = newest.schedule?.tickMs ?? request.expectedRunMs
  change(world, found, { nextRunMs: request.nextRunMs, lastRunMs, lastJob: newest.id })
  return 'fired'
}
