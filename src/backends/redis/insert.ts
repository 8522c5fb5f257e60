// jobs.insert over one script: the plain way for jobs that nothing hangs on, the long way for all others.
import type { JobId, NewJob } from '../../core/job.ts'
import type { InsertOutcome, InsertRefusal, InsertReply, InsertResult } from '../../store/ports.ts'
import { insertArgs, isPlain, plainArgs } from './insert-args.ts'
import { prepared } from './store.ts'
import type { RedisStore, ScriptCall } from './store.ts'

type InsertInto = (queue: string, jobs: readonly NewJob[]) => Promise<InsertReply>

export function createInsert(store: RedisStore): (jobs: readonly NewJob[]) => Promise<InsertReply> {
  const insertInto = createInsertInto(store, prepared(store, 'jobs.insert', 'insert'))
  return async (jobs) => (jobs.length === 0 ? { ok: true, results: [] } : insertInto(jobs[0]!.queue, jobs))
}

/** One script; on a Cluster all jobs are of this queue. */
export function createInsertInto(store: RedisStore, insert: ScriptCall): InsertInto {
  async function insertPlain(queue: string, jobs: readonly NewJob[]): Promise<InsertReply> {
    const { args, positions } = plainArgs(jobs)
    // Positions of those that were there already, from 1.
    const known = (await insert(queue, args)) as readonly number[]
    const results = jobs.map(({ id }): InsertResult => ({ id, outcome: 'inserted' }))
    for (const at of known) {
      const position = positions[at - 1]!
      results[position] = { id: jobs[position]!.id, outcome: 'already' }
    }
    return { ok: true, results }
  }

  async function insertAny(queue: string, jobs: readonly NewJob[]): Promise<InsertReply> {
    const reply = (await insert(queue, ['any', ...insertArgs(jobs, store.where)])) as AnyReply
    if (reply[0] === 1) return { ok: false, refusal: refusalOf(reply[1]) }
    const results = jobs.map((_, index): InsertResult => {
      const [outcome, id] = [reply[1][2 * index], reply[1][2 * index + 1]]
      return { id: id as JobId, outcome: outcome as InsertOutcome } // words and ids of lua/_insert.lua
    })
    return { ok: true, results }
  }

  return (queue, jobs) => (mayBePlain(jobs) ? insertPlain(queue, jobs) : insertAny(queue, jobs))
}

/** As lua/insert.lua answers. */
type AnyReply = readonly [0, readonly string[]] | readonly [1, Refused]
type Refused = readonly [code: string, jobId: string, about: string | readonly string[]]

function mayBePlain(jobs: readonly NewJob[]): boolean {
  if (!jobs.every(isPlain)) return false
  // Ids of one process rise; only where they do not is there need to look for one that comes twice.
  if (jobs.every(({ id }, index) => index === 0 || jobs[index - 1]!.id < id)) return true
  return new Set(jobs.map(({ id }) => id)).size === jobs.length
}

function refusalOf([code, jobId, about]: Refused): InsertRefusal {
  // The words of the refusal are those of the contract; each has its own kind of fact.
  if (code === 'DEPENDENCY_CYCLE') return { code, jobId, circle: about } as InsertRefusal
  if (code === 'DEPENDENCY_NOT_FOUND') return { code, jobId, parent: about } as InsertRefusal
  return { code, jobId, batch: about } as InsertRefusal
}
