// What callers were told while a store took nothing: that it was told at all, and why.
import { until } from '../tests/postgres/faults/until.ts'
import type { Stage } from './stage.ts'

export function refusals({ producers }: Pick<Stage, 'producers'>): readonly string[] {
  return producers.flatMap(({ refused }) => refused)
}

/** The fault is felt. */
export async function refusesEnqueues(stage: Stage, before: number): Promise<void> {
  await until(() => refusals(stage).length > before, 'an enqueue to be refused')
}

/** Refusals after the first so many that do not say why. */
export function unclear(told: readonly string[], before: number, why: RegExp): readonly string[] {
  const strange = told.slice(before).filter((message) => !why.test(message))
  return strange.length === 0 ? [] : [`${strange.length} refusals do not say why, as: ${strange[0]}`]
}

/** Of the hybrid, while only Redis was in trouble. */
export function needless(told: readonly string[], before: number): readonly string[] {
  const count = told.length - before
  return count === 0 ? [] : [`${count} jobs were refused although PostgreSQL was well, as: ${told[before]}`]
}
