// What must hold of a queue in Redis at every moment: within an epoch `held` is exactly what waits and what is in flight,
// or the next call says that it is torn. For simulation and tests.
import type { RaceQueue } from './race-model.ts'

export function raceProblems({ state, lanes, held }: RaceQueue): readonly string[] {
  if (state === null || held.get('#') !== state.tag) return []
  if (lanes.some((lane, at) => lane.length !== state.lengths[at])) return []
  const problems: string[] = []
  const waiting = new Set<string>()
  for (const text of lanes.flat()) {
    const field = text.slice(0, text.indexOf(' '))
    if (waiting.has(field)) problems.push(`${field} waits twice`)
    waiting.add(field)
    const note = held.get(field)
    if (note !== '' && note !== 'x') problems.push(`${field} waits, but held says ${note ?? 'nothing'}`)
  }
  for (const [field, note] of held) {
    if (field === '#') continue
    if (!note.includes('/') && !waiting.has(field)) problems.push(`${field} is held as waiting, but no lane has it`)
  }
  return problems
}
