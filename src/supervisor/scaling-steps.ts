// From an answer of the rules to what is written down: the plan, and the event if the size changed.
import { SCALING } from '../core/limits.ts'
import type { FleetAnswer } from '../core/scaling-fleet.ts'
import { sentenceOf } from '../core/scaling.ts'
import type { ScaleMetrics } from '../core/scaling.ts'
import type { Logger } from '../runtime/logger.ts'
import type { PlanChange } from './plan-keeper.ts'
import type { PlanNote, ScaleEvent } from './plan-notes.ts'
import type { ForceRequest } from './scaling-requests.ts'

export interface StepContext {
  readonly metrics: ScaleMetrics | null
  readonly request?: ForceRequest
  readonly nowMs: number
  readonly newId: () => string
}

/** Null: the plan says so already, and was written not long ago. */
export function changeOf(plan: PlanNote | null, answer: FleetAnswer, context: StepContext): PlanChange | null {
  const { pool, decision } = answer
  const shares = Object.fromEntries(answer.shares)
  const isSame = plan !== null && plan.total === decision.to && equal(plan.shares, shares)
  const ageMs = plan === null ? Infinity : Math.abs(context.nowMs - plan.decidedAtMs)
  if (isSame && ageMs < SCALING.planRefreshMs) return null
  const { from, to, action } = decision
  const reasons = decision.reasons.map((reason) => reason.slice(0, SCALING.reasonCharsMax))
  const event: ScaleEvent | null =
    action === 'hold'
      ? null
      : {
          id: context.newId(),
          queue: decision.queue,
          pool,
          action,
          from,
          to,
          reasons,
          metrics: context.metrics === null ? null : rounded(context.metrics),
          atMs: context.nowMs,
          ...(context.request !== undefined && { forcedBy: context.request.by, requestId: context.request.id }),
        }
  return { pool, total: to, shares, reasons: isSame ? plan.reasons : reasons, event }
}

export function logChange(logger: Logger, { pool, shares, event }: PlanChange, { decision }: FleetAnswer): void {
  if (event === null) logger.debug({ pool, shares }, `pool ${pool} ${sentenceOf(decision)}`)
  else logger.info({ ...event, shares }, `pool ${pool} goes ${sentenceOf(decision)}`)
}

function equal(one: Readonly<Record<string, number>>, other: Readonly<Record<string, number>>): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
}

function rounded(metrics: ScaleMetrics): ScaleMetrics {
  const entries = Object.entries(metrics).map(([name, value]) => [
    name,
    typeof value === 'number' ? round(value) : value,
  ])
  return Object.fromEntries(entries) as ScaleMetrics // the same fields
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
