// The checks of `millrace doctor` that any backend can answer, as data. A backend adds its own.
import { formatDuration } from '../core/duration.ts'
import { DEFAULTS } from '../core/limits.ts'
import { isLive } from '../core/liveness.ts'
import { decideHealth } from '../observability/health.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Check, Finding, FindingLevel } from '../store/diagnosis.ts'
import { describeError } from './cli-error.ts'
import { maskUrls } from './mask.ts'
import type { Session } from './session.ts'
import { counted } from './text.ts'

export interface Examined extends Finding {
  readonly name: string
}

/** What a person would find slow. */
const ROUND_TRIP_SLOW_MS = 100
const CLOCK_SKEW_MAX_MS = 1_000
const TICK_LATE_MS = 60_000
const CHECK_MAX_MS = 30_000

/** One after the other: they ask the same store, and the first one that fails explains the rest. */
export async function examine(checks: readonly Check[], clock: Clock): Promise<readonly Examined[]> {
  const examined: Examined[] = []
  for (const { name, run } of checks) {
    try {
      examined.push({ name, ...(await bounded(clock, CHECK_MAX_MS, `the check ${name}`, run())) })
    } catch (error) {
      examined.push({ name, level: 'fail', message: maskUrls(describeError(error).message) })
    }
  }
  return examined
}

export function worstOf(examined: readonly Finding[]): FindingLevel {
  const has = (level: FindingLevel): boolean => examined.some((one) => one.level === level)
  return has('fail') ? 'fail' : has('warn') ? 'warn' : 'ok'
}

export function clientChecks(session: Session, clock: Clock): readonly Check[] {
  return [
    { name: 'store', run: () => checkStore(session, clock) },
    { name: 'clock', run: () => checkClock(session) },
    { name: 'workers', run: () => checkWorkers(session, clock) },
    { name: 'paused-queues', run: () => checkPaused(session) },
    { name: 'oldest-ready', run: () => checkOldest(session, clock) },
    { name: 'dead-letters', run: () => checkDeadLetters(session) },
    { name: 'schedules', run: () => checkSchedules(session, clock) },
  ]
}

async function checkStore({ mill, settings }: Session, clock: Clock): Promise<Finding> {
  const startMs = clock.monoMs()
  await mill.queues.list()
  const ms = Math.round(clock.monoMs() - startMs)
  const message = `${settings.store.shown} answered in ${ms} ms`
  if (ms <= ROUND_TRIP_SLOW_MS) return ok(message)
  return warn(message, 'run workers near their store: every claim and every end of a job waits for it')
}

async function checkClock({ reads }: Session): Promise<Finding> {
  const seen = await reads.clock()
  if (seen === null) return ok('the store does not tell its clock here')
  const offMs = Math.max(0, Math.abs(seen.skewMs) - seen.roundTripMs / 2)
  const way = seen.skewMs > 0 ? 'ahead of' : 'behind'
  if (offMs < CLOCK_SKEW_MAX_MS) return ok('this machine and the store agree on the time')
  const message = `the clock of this machine is ${formatDuration(Math.round(offMs))} ${way} that of the store`
  return warn(message, 'set up NTP on both; jobs keep the time of the store, only what is shown here is off')
}

async function checkWorkers({ reads, mill }: Session, clock: Clock): Promise<Finding> {
  const [workers, seen] = await Promise.all([reads.workers(), reads.clock()])
  const nowMs = seen?.nowMs ?? clock.nowMs()
  const [queues, counts] = await Promise.all([mill.queues.list(), mill.jobs.counts()])
  const health = decideHealth({ queues, counts, workers, nowMs })
  const unserved = health.problems.filter(({ code }) => code === 'no-worker')
  if (unserved.length > 0) {
    const names = unserved.flatMap(({ queue }) => queue ?? [])
    return fail(
      `jobs are ready and no live worker serves: ${names.join(', ')}`,
      `millrace work --queue ${names.join(',')}`,
    )
  }
  const live = workers.filter((worker) => isLive(worker, nowMs))
  const silent = workers.filter((worker) => worker.state === 'alive' && !live.includes(worker))
  const blocked = live.filter(({ blockedMs }) => blockedMs > DEFAULTS.heartbeatMs)
  if (silent.length > 0) {
    const who = silent.map(({ id, host, pid }) => `${id} (process ${pid} on ${host})`)
    return warn(
      `${counted(silent.length, 'worker')} fell silent: ${who.join(', ')}`,
      'look at the exit of these processes',
    )
  }
  if (blocked.length > 0) {
    const who = blocked.map(({ id }) => id).join(', ')
    return warn(`the event loop stands still in ${who}`, 'move long computations into a worker thread')
  }
  return ok(`${counted(live.length, 'live worker')}, every queue with ready jobs is served`)
}

async function checkPaused({ mill }: Session): Promise<Finding> {
  const [queues, counts] = await Promise.all([mill.queues.list(), mill.jobs.counts()])
  const paused = queues.filter((queue) => queue.paused).map(({ name }) => name)
  if (paused.length === 0) return ok('no queue is paused')
  const waiting = counts.filter(({ queue }) => paused.includes(queue)).reduce((sum, one) => sum + one.counts.queued, 0)
  const message = `paused: ${paused.join(', ')}; ${counted(waiting, 'job')} wait${waiting === 1 ? 's' : ''} there`
  return warn(message, `if nobody means it any more: millrace queues resume ${paused[0]}`)
}

async function checkOldest({ mill, reads }: Session, clock: Clock): Promise<Finding> {
  const [counts, seen] = await Promise.all([mill.jobs.counts(), reads.clock()])
  const nowMs = seen?.nowMs ?? clock.nowMs()
  const ready = counts.flatMap(({ queue, oldestReadyAtMs }) =>
    oldestReadyAtMs === null ? [] : [{ queue, waitedMs: nowMs - oldestReadyAtMs }],
  )
  const oldest = ready.reduce((worst, one) => (one.waitedMs > worst.waitedMs ? one : worst), { queue: '', waitedMs: 0 })
  if (oldest.queue === '') return ok('no ready job waits')
  const message = `the oldest ready job has waited ${formatDuration(Math.round(oldest.waitedMs))} in queue ${oldest.queue}`
  if (oldest.waitedMs <= DEFAULTS.alertOldestReadyMs) return ok(message)
  return fail(message, 'more workers or more concurrency for this queue; millrace status shows who serves it')
}

async function checkDeadLetters({ mill }: Session): Promise<Finding> {
  const counts = await mill.jobs.counts()
  const failed = counts.filter((one) => one.counts.failed > 0).sort((a, b) => b.counts.failed - a.counts.failed)
  const total = failed.reduce((sum, one) => sum + one.counts.failed, 0)
  const where = failed.slice(0, 3).map(({ queue, counts: byStatus }) => `${queue} ${byStatus.failed}`)
  const message = total === 0 ? 'no dead letters' : `${counted(total, 'dead letter')}: ${where.join(', ')}`
  if (total <= DEFAULTS.alertDeadLetters) return ok(message)
  return warn(message, 'millrace dead ls, then replay or prune them')
}

async function checkSchedules({ mill, reads }: Session, clock: Clock): Promise<Finding> {
  const [schedules, seen] = await Promise.all([mill.schedules.list(), reads.clock()])
  const nowMs = seen?.nowMs ?? clock.nowMs()
  const late = schedules.filter(
    ({ enabled, nextRunAt }) => enabled && nextRunAt !== null && nowMs - nextRunAt.getTime() > TICK_LATE_MS,
  )
  if (late.length === 0) return ok(`${counted(schedules.length, 'schedule')}, none is late`)
  const names = late.map(({ name }) => name).join(', ')
  return fail(`missed their time: ${names}`, 'start a worker with maintenance on: it fires the schedules too')
}

const ok = (message: string): Finding => ({ level: 'ok', message })
const warn = (message: string, fix: string): Finding => ({ level: 'warn', message, fix })
const fail = (message: string, fix: string): Finding => ({ level: 'fail', message, fix })
