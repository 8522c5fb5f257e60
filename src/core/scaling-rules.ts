// Threshold mode: any reason for more workers wins over all reasons for fewer, and all that match are told. A step
// down must leave workers that are not too busy, or the next look would ask for it back.
import { formatDuration } from './duration.ts'
import type { ScaleMetrics, ScaleWish } from './scaling.ts'
import type { ScalingLimits } from './scaling-limits.ts'

export function askRules(from: number, metrics: ScaleMetrics, limits: ScalingLimits): ScaleWish {
  // A paused queue starts nothing, so neither what waits in it nor what arrives is work for anybody.
  const seen = metrics.paused ? { ...metrics, size: 0, waitMs: 0, arrivalPerS: 0 } : metrics
  const up = reasonsForUp(seen, limits)
  if (up.length > 0) return { to: from + limits.up.step, reasons: up }
  const down = reasonsForDown(seen, limits)
  if (down.length === 0) return { to: from, reasons: ['nothing asks for more or fewer'] }
  if (metrics.paused) down.unshift('the queue is paused')
  const left = from - limits.down.step
  const busy = busyShareOf(left, from, metrics)
  if (left >= limits.min && busy > limits.busyMax + ROUNDING) {
    return { to: from, reasons: [...down, `${left} workers would be ${percent(busy)} busy`] }
  }
  return { to: left, reasons: down }
}

function reasonsForUp(metrics: ScaleMetrics, { up, arrivalMinPerS }: ScalingLimits): string[] {
  const { size, waitMs, arrivalPerS, processingPerS, utilisation } = metrics
  const reasons: string[] = []
  if (size > up.size) reasons.push(`${count(size)} jobs are ready (more than ${up.size})`)
  if (arrivalPerS > up.arrivalRatio * processingPerS && arrivalPerS >= arrivalMinPerS) {
    reasons.push(
      `${rate(arrivalPerS)} arrive and ${rate(processingPerS)} are processed (more than ${up.arrivalRatio} x)`,
    )
  }
  if (utilisation > up.utilisation) {
    reasons.push(`${percent(utilisation)} of the slots are busy (more than ${percent(up.utilisation)})`)
  }
  if (waitMs > up.waitMs)
    reasons.push(`the oldest job waits ${wait(waitMs)} (longer than ${formatDuration(up.waitMs)})`)
  return reasons
}

function reasonsForDown(metrics: ScaleMetrics, { down }: ScalingLimits): string[] {
  const { size, waitMs, arrivalPerS, processingPerS, utilisation } = metrics
  const reasons: string[] = []
  if (size < down.size) reasons.push(`${count(size)} jobs are ready (fewer than ${down.size})`)
  if (utilisation < down.utilisation && waitMs < down.waitMs) {
    const calm = `the oldest job waits ${wait(waitMs)} (less than ${formatDuration(down.waitMs)})`
    reasons.push(`${percent(utilisation)} of the slots are busy (less than ${percent(down.utilisation)}) while ${calm}`)
  }
  if (processingPerS > down.processingRatio * arrivalPerS && size < down.calmSize) {
    reasons.push(
      `${rate(processingPerS)} are processed and ${rate(arrivalPerS)} arrive (more than ${down.processingRatio} x)`,
    )
  }
  return reasons
}

/** How busy `left` workers would be with what keeps `from` of them busy now. */
function busyShareOf(left: number, from: number, { utilisation }: ScaleMetrics): number {
  return left <= 0 ? Infinity : (utilisation * from) / left
}

/** 5 x 0.68 / 4 is a hair more than 0.85. */
const ROUNDING = 1e-9

function count(value: number): string {
  return String(Math.round(value))
}

export function rate(perS: number): string {
  return `${perS >= 100 ? Math.round(perS) : Math.round(perS * 100) / 100}/s`
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

export function wait(ms: number): string {
  return formatDuration(ms >= 1_000 ? Math.round(ms / 100) * 100 : Math.round(ms))
}
