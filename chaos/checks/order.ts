// Jobs of one group run one at a time, in the order in which they were enqueued.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import { mayRepeat } from './delivery.ts'
import type { Robbed } from './delivery.ts'

/** Jobs that started before an earlier one of their group had ended. */
export function outOfOrder(books: Books, robbed: readonly Robbed[]): readonly string[] {
  const runs = runsById(books.runs)
  const lastOf = new Map<string, string>()
  const wrong: string[] = []
  for (const [id, { group }] of books.asked) {
    const first = runs.get(id)?.[0]
    // Whoever asked was not told that it is stored: it has no place in the order.
    if (group === undefined || !books.acked.has(id) || first === undefined) continue
    const before = runs.get(lastOf.get(group) ?? '') ?? []
    // A run that lost its job may go on beside the next one; what counts is the one that owned it.
    const held = before.filter((run, index) => {
      const next = before[index + 1]
      return next === undefined || !mayRepeat(run, next, robbed)
    })
    if (held.some(({ startMs, endMs }) => first.startMs < (endMs ?? startMs))) wrong.push(id)
    lastOf.set(group, id)
  }
  return wrong
}
