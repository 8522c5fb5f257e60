// What Redis may keep of jobs that are gone: nothing, as a rule, since every script takes all of a job away in one atom. An
// eviction, a restored snapshot or a key deleted by hand can leave the live hash of a job, its attempts and logs, a unique key
// that nobody gives back, or messages to a worker that nobody knows. A script asks once more before it removes anything.
import type { Sweepable } from '../../store/tracking.ts'
import { scanStep } from './scan.ts'
import { prepared, scriptOf } from './store.ts'
import type { RedisStore } from './store.ts'

const JOB = /^job:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(:attempts|:logs)?$/
const UNIQUE = /^unique:([^]+)$/
const WORKER = /^(?:commands|cancels):([^]+)$/

export function createSweep(store: RedisStore): Sweepable['sweepTracking'] {
  const { link, keys } = store
  const sweepQueue = prepared(store, 'tracking.sweep', 'trackingSweep')
  const workerScript = scriptOf(store, 'tracking.sweep', 'workerSweep')

  return async ({ cursor, count, isDryRun }) => {
    const dry = isDryRun ? 1 : 0
    const step = await scanStep(link, keys.prefix, { cursor, count })
    const queues = new Map<string, Map<string, readonly [kind: string, name: string]>>()
    const workers = new Set<string>()
    for (const key of step.keys) {
      const { tag, part } = partsOf(keys.prefix, key)
      const [, id, suffix = ''] = JOB.exec(part) ?? []
      const unique = UNIQUE.exec(part)?.[1]
      if (tag === '_workers') add(workers, WORKER.exec(part)?.[1])
      else if (tag !== null && !tag.startsWith('_') && (id ?? unique) !== undefined) {
        const named = queues.get(tag) ?? new Map<string, readonly [string, string]>()
        // The three keys of a job go together, and are one question; each counts for itself where it may come in another step.
        const of = isDryRun ? suffix : ''
        if (id === undefined) named.set(part, ['unique', unique ?? ''])
        else named.set(`job:${id}${of}`, [`job${of}`, id])
        queues.set(tag, named)
      }
    }
    let dead = 0
    for (const [queue, named] of queues) {
      dead += Number(await sweepQueue(queue, [queue, dry, ...[...named.values()].flat()]))
    }
    if (workers.size > 0) dead += Number(await link.run(workerScript, [keys.workers], [keys.prefix, dry, ...workers]))
    return { cursor: step.cursor, counts: { seen: step.keys.length, dead, endless: 0, foreign: 0 } }
  }
}

function add(set: Set<string>, value: string | undefined): void {
  if (value !== undefined) set.add(value)
}

/** `millrace:{mail}:job:<id>` is the part `job:<id>` of the tag `mail`. */
export function partsOf(prefix: string, key: string): { readonly tag: string | null; readonly part: string } {
  const found = /^\{([^}]*)\}:([^]*)$/.exec(key.slice(prefix.length + 1))
  return { tag: found?.[1] ?? null, part: found?.[2] ?? '' }
}
