// The job kinds of one process, by name. A Map, so that no name can reach a prototype.
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import { checkName, invalidOption, shown } from '../core/names.ts'

export interface Registry {
  /** Throws UNKNOWN_JOB. */
  get(name: string): AnyJob
  find(name: string): AnyJob | undefined
  /** The registered definition behind a name or a definition object. Throws UNKNOWN_JOB. */
  resolve(job: AnyJob | string): AnyJob
  names(): readonly string[]
  all(): readonly AnyJob[]
}

export function createRegistry(jobs: readonly AnyJob[]): Registry {
  const byName = new Map<string, AnyJob>()
  if (!Array.isArray(jobs)) throw invalidOption('jobs', jobs, 'an array of jobs made by defineJob()')
  for (const [index, job] of (jobs as readonly AnyJob[]).entries()) {
    if (!isDefinition(job)) throw invalidOption(`jobs[${index}]`, job, 'a job made by defineJob()')
    const name = checkName(job.name, 'job')
    const other = byName.get(name)
    if (other !== undefined && other !== job) {
      const message = `two job definitions are named ${name} (queues ${other.queue} and ${job.queue}): rename one of them`
      throw new MillraceError('DUPLICATE_JOB', message, { details: { name } })
    }
    byName.set(name, job)
  }

  function get(name: string): AnyJob {
    const job = byName.get(name)
    if (job === undefined) throw unknownJob(name, [...byName.keys()])
    return job
  }

  return {
    get,
    find: (name) => byName.get(name),
    resolve(job) {
      if (typeof job === 'string') return get(job)
      if (!isDefinition(job)) throw notDefined(job)
      get(job.name)
      // A module that was loaded again (hot reload, a second bundle) brings its own object of the same kind.
      return job
    },
    names: () => [...byName.keys()],
    all: () => [...byName.values()],
  }
}

function isDefinition(job: unknown): job is AnyJob {
  return typeof job === 'object' && job !== null && 'handler' in job && typeof job.handler === 'function'
}

function notDefined(job: unknown): MillraceError {
  const message = `${shown(job)} is no job: pass one that was made by defineJob(), or its name`
  return new MillraceError('UNKNOWN_JOB', message, { details: { near: [] } })
}

const NEAR_MAX = 3

function unknownJob(name: string, known: readonly string[]): MillraceError {
  const near = nearNames(name, known)
  const hint =
    near.length > 0
      ? `did you mean ${near.join(' or ')}?`
      : known.length === 0
        ? 'no job is registered: pass it in `jobs`'
        : 'pass it in `jobs`, or correct the name'
  return new MillraceError('UNKNOWN_JOB', `no job named ${shown(name)} is registered: ${hint}`, {
    details: { near },
  })
}

/** Names that contain each other, have swapped letters, or differ in few. */
function nearNames(name: string, known: readonly string[]): readonly string[] {
  const asked = letters(name)
  return known
    .filter((other) => {
      const there = letters(other)
      return (
        sorted(there) === sorted(asked) ||
        there.includes(asked) ||
        asked.includes(there) ||
        sharedLetters(asked, there) >= 0.5
      )
    })
    .slice(0, NEAR_MAX)
}

function letters(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .slice(0, 100)
}

/** Pairs of letters say little about swapped ones in a short name. */
function sorted(text: string): string {
  return text.split('').sort().join('')
}

/** The share of letter pairs both words have (Dice): tolerant of missing and added letters. */
function sharedLetters(a: string, b: string): number {
  const left = new Set(pairs(a))
  const right = new Set(pairs(b))
  const shared = [...left].filter((pair) => right.has(pair)).length
  return left.size + right.size === 0 ? 0 : (2 * shared) / (left.size + right.size)
}

function pairs(text: string): readonly string[] {
  return Array.from({ length: Math.max(0, text.length - 1) }, (_, index) => text.slice(index, index + 2))
}
