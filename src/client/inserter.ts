// Writes new jobs to one connection. Single calls made while nothing can be sent yet share one insert
// (group commit); bulk calls go alone, because they are one atom. A lost reply is repeated with the same
// ids. States: idle → (a call) → a flush is due at the end of this tick → flushing → idle, or the next flush.
// Where the store keeps their order a second flush may be under way: it works while the next one is made.
import { MillraceError } from '../core/errors.ts'
import { cycleError } from '../core/flow.ts'
import type { JobId, NewJob } from '../core/job.ts'
import { isPlanted } from '../core/planted.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { InsertRefusal, InsertReply, InsertResult } from '../store/ports.ts'
import type { QueueSettings, QueueStore } from '../store/queue-store.ts'
import { retryStore } from './store-retry.ts'

export interface InserterParts {
  readonly runtime: Runtime
  readonly insert: (jobs: readonly NewJob[]) => Promise<InsertReply>
  /** Inside a transaction nothing is repeated: after an error it only accepts its rollback. */
  readonly insideTransaction: boolean
  readonly ensure: EnsureQueues
  /** Inserts that may be under way at once. */
  readonly insertsMax: number
}

/** Makes the queues of these jobs that are not known to be there; undefined when there is nothing to wait for. */
export type EnsureQueues = (jobs: readonly Pick<NewJob, 'queue'>[]) => Promise<void> | undefined

export interface EnsureParts {
  readonly runtime: Runtime
  readonly queues: Pick<QueueStore, 'ensure'>
  /** The settings of a queue that is not in the store yet. */
  readonly settingsOf: (queue: string) => QueueSettings
}

interface Waiting {
  readonly job: NewJob
  readonly resolve: (result: InsertResult) => void
  readonly reject: (error: unknown) => void
}

const FLUSH_JOBS_MAX = 1_000
/** Fewer calls than this wait for the flush under way to be answered. */
const WORTH_MIN = 32
const FLUSH_CHARS_MAX = 4 * 1024 * 1024
/** Callers who wait for a store that does not answer; beyond it they are told at once. */
const WAITING_MAX = 100_000

/** Calls that wait for the flush before theirs. */
interface Line {
  waiting: Waiting[]
  /** Flushes that the store has not answered yet, with the one that is due at the end of this tick. */
  underWay: number
  /** Calls that wait or are under way. */
  unanswered: number
  /** So many calls are worth a flush of their own while another is under way. */
  worth: number
}

export class Inserter {
  readonly #parts: InserterParts
  // A job with a key, a group or a limit may have to wait for somebody's lock: those that need none do not wait with it. Its
  // order also counts for more, and a flush that has to be repeated may be overtaken: keyed ones go one after the other.
  readonly #plain = newLine()
  readonly #keyed = newLine()

  constructor(parts: InserterParts) {
    this.#parts = parts
  }

  /** May share its round trip with other single calls. */
  one(job: NewJob): Promise<InsertResult> {
    const missing = this.#parts.ensure([job])
    // A batch or a parent may be refused, and a refusal refuses the whole insert.
    const alone = job.batch !== undefined || job.dependsOn !== undefined
    const write = (): Promise<InsertResult> =>
      alone ? this.#insert([job]).then(([result]) => result!) : this.#join(job)
    return missing === undefined ? write() : missing.then(write)
  }

  /** Makes the queues of jobs that the store itself will insert: callbacks, ticks. */
  async makeQueues(jobs: readonly NewJob[]): Promise<void> {
    await this.#parts.ensure(jobs)
  }

  /** One atom: all or none. In the order given. */
  async many(jobs: readonly NewJob[]): Promise<readonly InsertResult[]> {
    await this.#parts.ensure(jobs)
    return this.#insert(jobs)
  }

  async #insert(jobs: readonly NewJob[]): Promise<readonly InsertResult[]> {
    const { insert, insideTransaction, runtime } = this.#parts
    const reply = insideTransaction
      ? await insert(jobs)
      : await retryStore(runtime, (tryNo) => {
          const again = tryNo > 1 && isPlanted('enqueue-retried-with-new-id')
          runtime.failpoint('enqueue.before-insert')
          return insert(again ? jobs.map((job) => ({ ...job, id: runtime.newId() as JobId })) : jobs)
        })
    runtime.failpoint('enqueue.after-insert')
    if (!reply.ok) throw refused(reply.refusal)
    return reply.results
  }

  #join(job: NewJob): Promise<InsertResult> {
    const isKeyed = job.unique !== undefined || job.group !== undefined || job.limitKey !== undefined
    const line = isKeyed ? this.#keyed : this.#plain
    if (line.waiting.length >= WAITING_MAX) {
      const message = `${WAITING_MAX} enqueue calls already wait for the store`
      return Promise.reject(new MillraceError('STORE_UNAVAILABLE', message, { retryable: true }))
    }
    return new Promise((resolve, reject) => {
      line.waiting.push({ job, resolve, reject })
      line.unanswered += 1
      if (line.underWay === 0) {
        line.underWay = 1
        queueMicrotask(() => void this.#flushAll(line))
      } else if (!isKeyed && line.waiting.length >= line.worth && line.underWay < this.#parts.insertsMax) {
        line.underWay += 1
        void this.#flushAll(line)
      }
    })
  }

  async #flushAll(line: Line): Promise<void> {
    for (let flush = takeFlush(line); flush.length > 0; flush = takeFlush(line)) {
      // Producers that wait for their answers keep so many calls unanswered: two halves of them take turns.
      line.worth = Math.max(WORTH_MIN, line.unanswered >> 1)
      await this.#settle(line, flush)
    }
    line.underWay -= 1
  }

  /** Never rejects. One job that the store cannot take must not fail the calls it travelled with. */
  async #settle(line: Line, flush: readonly Waiting[]): Promise<void> {
    try {
      const results = await this.#insert(flush.map(({ job }) => job))
      line.unanswered -= flush.length
      for (const [index, call] of flush.entries()) call.resolve(results[index]!)
    } catch (error) {
      if (flush.length === 1 || !concernsOne(error) || this.#parts.insideTransaction) {
        line.unanswered -= flush.length
        for (const call of flush) call.reject(error)
        return
      }
      const half = flush.length >> 1
      await Promise.all([this.#settle(line, flush.slice(0, half)), this.#settle(line, flush.slice(half))])
    }
  }
}

function newLine(): Line {
  return { waiting: [], underWay: 0, unanswered: 0, worth: WORTH_MIN }
}

/** A lock that somebody holds, or a value that the store does not take: one job of many may be the cause. */
function concernsOne(error: unknown): boolean {
  if (!(error instanceof MillraceError)) return true
  const { sqlState } = error.details ?? {}
  return typeof sqlState === 'string' && /^(?:55P03|22|23|54)/.test(sqlState)
}

function takeFlush(line: Line): readonly Waiting[] {
  let chars = 0
  let count = 0
  for (const { job } of line.waiting) {
    chars += job.payload.length
    if (count >= FLUSH_JOBS_MAX || (count > 0 && chars > FLUSH_CHARS_MAX)) break
    count += 1
  }
  const flush = line.waiting.slice(0, count)
  line.waiting = line.waiting.slice(count)
  return flush
}

/** Each queue is ensured once per connection of a client, whoever writes to it. */
export function createEnsure({ runtime, queues, settingsOf }: EnsureParts): EnsureQueues {
  const known = new Map<string, 'there' | Promise<void>>()
  return (jobs) => {
    if (jobs.every(({ queue }) => known.get(queue) === 'there')) return undefined
    const missing = new Set<string>()
    const waits = new Set<Promise<void>>()
    for (const { queue } of jobs) {
      const state = known.get(queue)
      if (state === undefined) missing.add(queue)
      else if (state !== 'there') waits.add(state)
    }
    if (missing.size > 0) {
      const settings = [...missing].map(settingsOf)
      const ensuring = retryStore(runtime, () => queues.ensure(settings)).then(
        () => missing.forEach((queue) => known.set(queue, 'there')),
        (error: unknown) => {
          missing.forEach((queue) => known.delete(queue))
          throw error
        },
      )
      missing.forEach((queue) => known.set(queue, ensuring))
      waits.add(ensuring)
    }
    return waits.size === 0 ? undefined : Promise.all(waits).then(() => undefined)
  }
}

function refused(refusal: InsertRefusal): MillraceError {
  const { code, jobId } = refusal
  switch (code) {
    case 'DEPENDENCY_NOT_FOUND': {
      const message = `job ${jobId} depends on ${refusal.parent}, which does not exist: enqueue the parent first, or in the same call`
      return new MillraceError(code, message, { details: { jobId, parent: refusal.parent } })
    }
    case 'DEPENDENCY_CYCLE':
      return cycleError(refusal.circle)
    case 'BATCH_NOT_FOUND': {
      const message = `there is no batch ${refusal.batch}: create it first, or correct the id`
      return new MillraceError(code, message, { details: { jobId, batch: refusal.batch } })
    }
    case 'BATCH_CLOSED': {
      const message = `batch ${refusal.batch} is sealed, cancelled or finished and takes no more jobs`
      return new MillraceError(code, message, { details: { jobId, batch: refusal.batch } })
    }
  }
}
