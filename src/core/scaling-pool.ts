// From the queues of a pool to its size: the largest that any of them asks for. So it grows when one queue needs it
// and shrinks only when every queue allows it.
import type { ScaleAction, ScaleDecision } from './scaling.ts'

export interface QueueDecision extends ScaleDecision {
  readonly queue: string
}

export interface PoolDecision extends ScaleDecision {
  /** The queue whose word it was; null: a pool without queues, or the bounds of its hosts. */
  readonly queue: string | null
}

export interface PoolBounds {
  /** Of all its hosts together. */
  readonly min: number
  readonly max: number
}

export function decidePool(from: number, decisions: readonly QueueDecision[], { min, max }: PoolBounds): PoolDecision {
  const to = decisions.length === 0 ? from : Math.max(...decisions.map((one) => one.to))
  const spoke = decisions.filter((one) => one.to === to)
  const named = decisions.length > 1
  const reasons = spoke.flatMap(({ queue, reasons: own }) => {
    const text = own.join(' and ')
    return text === '' ? [] : [named ? `${queue}: ${text}` : text]
  })
  const bounded = Math.max(Math.min(to, max), min)
  const cut = bounded < to ? [`the hosts allow ${max}`] : bounded > to ? [`the hosts ask for ${min}`] : []
  const told = reasons.slice(0, REASONS_MAX)
  return {
    queue: spoke[0]?.queue ?? null,
    action: actionOf(from, bounded),
    from,
    to: bounded,
    reasons: [...told, ...cut],
  }
}

export function actionOf(from: number, to: number): ScaleAction {
  return to > from ? 'up' : to < from ? 'down' : 'hold'
}

/** A pool may serve hundreds of queues; the record of its plan has bounds. */
const REASONS_MAX = 5
