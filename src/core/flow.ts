// Dependencies inside one enqueue call may point at each other; a circle could never start.
import { MillraceError } from './errors.ts'
import type { JobId, NewJob } from './job.ts'

type Node = Pick<NewJob, 'id' | 'name' | 'dependsOn'>

/** Throws DEPENDENCY_CYCLE with the circle spelled out. */
export function checkNoCycle(jobs: readonly Node[]): void {
  const circle = findCycle(jobs)
  if (circle === null) return
  const nameOf = new Map(jobs.map(({ id, name }) => [id, name]))
  const names = circle.map((id) => nameOf.get(id) ?? id)
  throw cycleError(names)
}

export function cycleError(names: readonly string[]): MillraceError {
  const message = `these jobs depend on each other in a circle: ${names.join(' → ')}; break it`
  return new MillraceError('DEPENDENCY_CYCLE', message, { details: { jobs: names } })
}

/** The ids of a circle, the first one again at the end; null when there is none. Linear, without recursion. */
export function findCycle(jobs: readonly Pick<NewJob, 'id' | 'dependsOn'>[]): readonly JobId[] | null {
  const byId = new Map(jobs.map((job) => [job.id, job]))
  const openParents = new Map<JobId, number>()
  const children = new Map<JobId, JobId[]>()
  for (const job of jobs) {
    const parents = (job.dependsOn ?? []).filter(({ parent }) => byId.has(parent))
    openParents.set(job.id, parents.length)
    for (const { parent } of parents) {
      const known = children.get(parent)
      if (known === undefined) children.set(parent, [job.id])
      else known.push(job.id)
    }
  }
  const free = jobs.filter((job) => openParents.get(job.id) === 0).map((job) => job.id)
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    openParents.delete(id)
    for (const child of children.get(id) ?? []) {
      const left = (openParents.get(child) ?? 0) - 1
      openParents.set(child, left)
      if (left === 0) free.push(child)
    }
  }
  const [stuck] = openParents.keys()
  return stuck === undefined ? null : circleFrom(stuck, byId, openParents)
}

function circleFrom(
  start: JobId,
  byId: ReadonlyMap<JobId, Pick<NewJob, 'dependsOn'>>,
  stuck: ReadonlyMap<JobId, number>,
): readonly JobId[] {
  const path: JobId[] = []
  let at: JobId | undefined = start
  while (at !== undefined && !path.includes(at)) {
    path.push(at)
    at = byId.get(at)?.dependsOn?.find(({ parent }) => stuck.has(parent))?.parent
  }
  return at === undefined ? path : [...path.slice(path.indexOf(at)), at]
}
