// What happened lately, from looks at the same counts at different times: pure. Retention takes finished jobs away
// between two looks, so a step that would be negative counts as nothing: numbers may be a little low, never too high.
import type { JobStatus } from '../core/job.ts'
import type { QueueCounts } from '../store/job-query.ts'

export interface Recent {
  /** Between the first look and the last one. */
  readonly seconds: number
  readonly arrived: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
}

/** One look; `atMs` on the monotonic clock. */
export interface Look {
  readonly atMs: number
  readonly counts: ReadonlyMap<string, QueueCounts['counts']>
}

const LOOKS_MAX = 128

/** The looks of the last `windowMs` and the one before them. */
export function withLook(looks: readonly Look[], look: Look, windowMs: number): readonly Look[] {
  const all = [...looks, look]
  const young = all.findIndex(({ atMs }) => atMs > look.atMs - windowMs)
  return all.slice(Math.max(0, young - 1)).slice(-LOOKS_MAX)
}

/** By the keys of the looks; null until there are two looks. */
export function recentOf(looks: readonly Look[]): ReadonlyMap<string, Recent> | null {
  const [first, last] = [looks[0], looks.at(-1)]
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return null
  const seconds = (last.atMs - first.atMs) / 1000
  return new Map([...last.counts.keys()].map((key) => [key, { seconds, ...stepsOf(looks, key) }]))
}

export function sumOfRecent(parts: ReadonlyMap<string, Recent> | null): Recent | null {
  if (parts === null) return null
  const all = [...parts.values()]
  const sum = (of: (one: Recent) => number): number => all.reduce((total, one) => total + of(one), 0)
  return {
    seconds: all[0]?.seconds ?? 0,
    arrived: sum((one) => one.arrived),
    completed: sum((one) => one.completed),
    failed: sum((one) => one.failed),
    cancelled: sum((one) => one.cancelled),
  }
}

function stepsOf(looks: readonly Look[], key: string): Omit<Recent, 'seconds'> {
  const sums = { arrived: 0, completed: 0, failed: 0, cancelled: 0 }
  for (const [at, look] of looks.entries()) {
    const [before, now] = [looks[at - 1]?.counts.get(key), look.counts.get(key)]
    if (at === 0 || now === undefined) continue
    const grown = (status: JobStatus): number => Math.max(0, now[status] - (before?.[status] ?? 0))
    sums.completed += grown('completed')
    sums.failed += grown('failed')
    sums.cancelled += grown('cancelled')
    sums.arrived += Math.max(0, totalOf(now) - (before === undefined ? 0 : totalOf(before)))
  }
  return sums
}

function totalOf(counts: QueueCounts['counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
