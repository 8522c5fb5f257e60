// Dependencies inside one enqueue call may point at each other; a circle could never start.
import { MillraceError } from './errors.ts'
import type { JobId, NewJob } from './job.ts'

/** Throws DEPENDENCY_CYCLE with the circle spelled out. Linear in jobs and dependencies, without recursion. */
export function checkNoCycle(jobs: readonly Pick<NewJob, 'id' | 'name' | 'dependsOn'>[]): void {
  const byId = new Map(jobs.map((job) => [job.id, job]))
  const openParents = new Map<JobId, number>()
  const children = new Map<JobId, JobId[]>()
  for (const job of jobs) {
    const parents = (job.dependsOn ?? []).filter(({ parent }) => byId.has(parent))
    openParents.set(job.id, parents.length)
    for (const { parent } of parents) children.set(parent, [...(children.get(parent) ?? []), job.id])
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
  if (stuck === undefined) return
  const names = circleFrom(stuck, byId, openParents).map((id) => byId.get(id)?.name ?? id)
  throw new MillraceError(
    'DEPENDENCY_CYCLE',
    `these jobs depend on each other in a circle: ${names.join(' → ')}; break it`,
    {
      details: { jobs: names },
    },
  )
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
