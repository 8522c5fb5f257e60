// jobs.insert over one script: the plain way for jobs that nothing hangs on, the long way for all others.
import type { JobId, NewJob } from '../../core/job.ts'
import type { InsertOutcome, InsertRefusal, InsertReply, InsertResult } from '../../store/ports.ts'
import { insertArgs, isPlain, plainArgs } from './insert-args.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

export function createInsert(store: RedisStore): (jobs: readonly NewJob[]) => Promise<InsertReply> {
  const insert = prepared(store, 'jobs.insert', 'insert')

  async function insertPlain(jobs: readonly NewJob[]): Promise<InsertReply> {
    const { args, positions } = plainArgs(jobs)
    // Positions of those that were there already, from 1.
    const known = (await insert(jobs[0]!.queue, args)) as readonly number[]
    const results = jobs.map(({ id }): InsertResult => ({ id, outcome: 'inserted' }))
    for (const at of known) {
      const position = positions[at - 1]!
      results[position] = { id: jobs[position]!.id, outcome: 'already' }
    }
    return { ok: true, results }
  }

  async function insertAny(jobs: readonly NewJob[]): Promise<InsertReply> {
    const reply = (await insert(jobs[0]!.queue, ['any', ...insertArgs(jobs, store.where)])) as AnyReply
    if (reply[0] === 1) return { ok: false, refusal: refusalOf(reply[1]) }
    const results = jobs.map((_, index): InsertResult => {
      const [outcome, id] = [reply[1][2 * index], reply[1][2 * index + 1]]
      return { id: id as JobId, outcome: outcome as InsertOutcome } // words and ids of lua/_insert.lua
    })
    return { ok: true, results }
  }

  return async (jobs) => {
    if (jobs.length === 0) return { ok: true, results: [] }
    return mayBePlain(jobs) ? insertPlain(jobs) : insertAny(jobs)
  }
}

/** As lua/insert.lua answers. */
type AnyReply = readonly [0, readonly string[]] | readonly [1, Refused]
type Refused = readonly [code: string, jobId: string, about: string | readonly string[]]

function mayBePlain(jobs: readonly NewJob[]): boolean {
  if (!jobs.every(isPlain)) return false
  return jobs.length === 1 || new Set(jobs.map(({ id }) => id)).size === jobs.length
}

function refusalOf([code, jobId, about]: Refused): InsertRefusal {
  // The words of the refusal are those of the contract; each has its own kind of fact.
  if (code === 'DEPENDENCY_CYCLE') return { code, jobId, circle: about } as InsertRefusal
  if (code === 'DEPENDENCY_NOT_FOUND') return { code, jobId, parent: about } as InsertRefusal
  return { code, jobId, batch: about } as InsertRefusal
}
