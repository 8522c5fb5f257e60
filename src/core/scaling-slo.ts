// Holding a longest wait. By Little's law, jobs that arrive at a rate and run for a time keep rate x time slots busy;
// what waits already must be started before its wait is over, which takes slots of its own for that long. Jobs that
// run now keep their slots whatever the rates say, so long jobs are not scaled away under their own feet.
//
// Fast up: straight to what is needed, at most twice as many at a time. Slow down: one step, and only if it would
// still be right with some more load.
import { formatDuration } from './duration.ts'
import { SCALING } from './limits.ts'
import type { ScaleMetrics, ScaleWish } from './scaling.ts'
import type { ScalingLimits } from './scaling-limits.ts'
import { percent, rate, wait } from './scaling-rules.ts'

/** What is ready is started within the rest of its wait, but nobody can be started in no time. */
const DRAIN_SHARE_MIN = 0.25

export function askSlo(from: number, metrics: ScaleMetrics, limits: ScalingLimits, maxWaitMs: number): ScaleWish {
  const { step } = limits.up
  if (metrics.serviceMs === null && metrics.size > 0 && !metrics.paused) {
    const { utilisation, size } = metrics
    const known = `no job has ended yet, ${Math.round(size)} are ready and ${percent(utilisation)} of the slots are busy`
    return { to: utilisation > limits.up.utilisation ? from + step : from, reasons: [known] }
  }
  const needed = workersFor(metrics, limits, maxWaitMs, 1)
  const told = explain(metrics, maxWaitMs, needed)
  if (needed > from) return { to: Math.min(needed, Math.max(from * 2, from + step)), reasons: told }
  const withSlack = workersFor(metrics, limits, maxWaitMs, 1 + SCALING.sloSlack)
  const left = from - limits.down.step
  if (withSlack <= left) return { to: left, reasons: told }
  return { to: from, reasons: told }
}

/** `load` times what is there. */
function workersFor(metrics: ScaleMetrics, limits: ScalingLimits, maxWaitMs: number, load: number): number {
  const { running, busyOthers, concurrency, serviceMs, arrivalPerS, waitMs, size, paused } = metrics
  const serviceS = (serviceMs ?? 0) / 1_000
  const drainS = Math.max(maxWaitMs - waitMs, maxWaitMs * DRAIN_SHARE_MIN) / 1_000
  const steady = Math.max(paused ? 0 : arrivalPerS * serviceS, running)
  const backlog = paused ? 0 : (size * serviceS) / drainS
  // A hair less, so that 17 busy slots of 20 at 85 % are exactly two workers of ten.
  return Math.max(1, Math.ceil(((steady + busyOthers + backlog) * load) / (concurrency * limits.busyMax) - 1e-9))
}

function explain(metrics: ScaleMetrics, maxWaitMs: number, needed: number): readonly string[] {
  const { size, waitMs, arrivalPerS, serviceMs, running, paused } = metrics
  if (paused) return ['the queue is paused', `${needed} workers are enough for ${Math.round(running)} running jobs`]
  return [
    `${needed} workers hold a wait of ${formatDuration(maxWaitMs)} with ${rate(arrivalPerS)} that run ${wait(serviceMs ?? 0)} each, ` +
      `${Math.round(running)} running and ${Math.round(size)} ready, the oldest for ${wait(waitMs)}`,
  ]
}
