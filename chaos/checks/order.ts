// Jobs of one group run one at a time, in the order in which they were enqueued.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import { mayRepeat } from './delivery.ts'
import type { Robbed } from './delivery.ts'

/** The most jobs of one group that were acknowledged and had not ended: with one at a time no order can be broken. */
export function groupDepth(books: Books): number {
  const runs = runsById(books.runs)
  const steps = new Map<string, (readonly [atMs: number, by: 1 | -1])[]>()
  for (const [id, { group }] of books.asked) {
    const ackedMs = books.acked.get(id)
    const endedMs = runs.get(id)?.at(-1)?.endMs ?? Infinity
    // One that ended before its caller was told has waited for nobody.
    if (group === undefined || ackedMs === undefined || endedMs <= ackedMs) continue
    const own = steps.get(group) ?? []
    own.push([ackedMs, 1], [endedMs, -1])
    steps.set(group, own)
  }
  return Math.max(0, ...[...steps.values()].map(highest))
}

function highest(steps: readonly (readonly [atMs: number, by: 1 | -1])[]): number {
  let [now, most] = [0, 0]
  for (const [, by] of steps.toSorted(([one, a], [other, b]) => one - other || a - b)) {
    now += by
    most = Math.max(most, now)
  }
  return most
}

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
