// Dead letters: failed jobs with everything that is known of them. List, inspect, replay one or many,
// remove, prune. Every change is guarded by `failed`, so nothing else is ever touched.
import { decideRemove } from '../core/decide.ts'
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId, StoredJob } from '../core/job.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKey, checkKnownOptions, checkName } from '../core/names.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Connections } from './connections.ts'
import { checkJobRef } from './ids.ts'
import type { JobRef } from './ids.ts'
import { FILTERS, toJobFilter } from './job-filter.ts'
import type { JobListFilter, PageOptions } from './job-filter.ts'
import { viewAttempt, viewJob } from './job-view.ts'
import type { Attempt, Job } from './job-view.ts'
import type { JobPage, Jobs } from './jobs.ts'
import { replayCopies, replaySame, wasCopied } from './replay.ts'
import { jobNotFound } from './results.ts'
import { retryStore } from './store-retry.ts'

export interface DeadLetterFilter extends Omit<JobListFilter, 'status'> {
  /** Failed at least this long ago. */
  readonly olderThan?: Duration
}

export interface DeadLetter extends Job {
  readonly attempts: readonly Attempt[]
}

export interface ReplayOptions {
  /** Who asked; kept in the audit trail. */
  readonly actor?: string
}

export interface ReplayManyOptions extends ReplayOptions {
  /** Count only. */
  readonly dryRun?: boolean
  /** Default and at most 10 000. */
  readonly limit?: number
  /** Default: as fast as the store takes them. */
  readonly perSecond?: number
  /** As new jobs instead of the same ones. */
  readonly asNew?: boolean
}

export interface ReplayCount {
  readonly matched: number
  readonly replayed: number
  /** Replayed before, no longer failed, or their unique key is taken. */
  readonly skipped: number
}

export interface PruneOptions {
  readonly olderThan?: Duration
  readonly queue?: string
  readonly connection?: string
}

export interface DeadLetters {
  list(filter?: DeadLetterFilter, page?: PageOptions): Promise<JobPage>
  get(id: JobRef): Promise<DeadLetter | null>
  /** The same job again with fresh attempts. Throws JOB_NOT_FOUND, NOT_REPLAYABLE, UNIQUE_KEY_TAKEN. */
  replay(id: JobRef, options?: ReplayOptions): Promise<void>
  /** A new job with the same work, linked both ways; the same failure gives the same new job. */
  replayAsNew(id: JobRef, options?: ReplayOptions): Promise<JobId>
  replayMany(filter: DeadLetterFilter, options?: ReplayManyOptions): Promise<ReplayCount>
  remove(id: JobRef): Promise<boolean>
  /** Deletes those older than this (default 30 days); answers how many. */
  prune(options?: PruneOptions): Promise<number>
}

const ACTOR = 'operator'
const DEAD_LETTER_FILTERS: readonly string[] = [...FILTERS.filter((name) => name !== 'status'), 'olderThan']
const PRUNE_PASSES_MAX = 10_000

export function createDeadLetters(connections: Connections, runtime: Runtime, jobs: Jobs): DeadLetters {
  async function failedJob(ref: JobRef): Promise<{ readonly connection: string; readonly job: StoredJob }> {
    const { id, connection } = checkJobRef(ref, 'job id')
    const found = await retryStore(runtime, () => connections.locate(id, connection))
    if (found === null) throw jobNotFound(id)
    return found
  }

  function filterOf(asked: DeadLetterFilter): JobListFilter {
    checkKnownOptions(asked, DEAD_LETTER_FILTERS, 'dead letter filter')
    const { olderThan, ...filter } = asked
    return {
      ...filter,
      status: 'failed',
      ...(olderThan !== undefined && { finishedUntil: runtime.clock.nowMs() - parseDuration(olderThan, 'olderThan') }),
    }
  }

  return {
    list: async (filter = {}, page) => jobs.list(filterOf(filter), page),
    async get(ref) {
      const { id, connection } = checkJobRef(ref, 'job id')
      const found = await connections.locate(id, connection)
      if (found === null || found.job.status !== 'failed') return null
      const attempts = await connections.backend(found.connection).query.attempts(id)
      return { ...viewJob(found.job, found.connection), attempts: attempts.map(viewAttempt) }
    },
    async replay(ref, options = {}) {
      checkKnownOptions(options, ['actor'], 'replay()')
      const actor = actorOf(options)
      const { connection, job } = await failedJob(ref)
      const [verdict] = await replaySame(connections.backend(connection), runtime, [job], actor)
      if (verdict === 'missing') throw jobNotFound(job.id)
      if (verdict === 'conflict') throw keyTaken(job)
      if (verdict !== 'applied' && verdict !== 'already') throw notReplayable(job)
    },
    async replayAsNew(ref, options = {}) {
      checkKnownOptions(options, ['actor'], 'replayAsNew()')
      const actor = actorOf(options)
      const { connection, job } = await failedJob(ref)
      if (job.status !== 'failed') throw notReplayable(job)
      const [id] = await replayCopies(connections.backend(connection), runtime, [job], actor)
      return id!
    },
    replayMany: async (filter, options = {}) => replayMany(connections, runtime, filterOf(filter), options),
    async remove(ref) {
      const { id, connection } = checkJobRef(ref, 'job id')
      const found = await connections.locate(id, connection)
      if (found === null) return false
      const [remove] = decideRemove(id)
      const guarded = { ...remove, guard: { from: ['failed'] } } as const
      const [verdict] = await retryStore(runtime, () => connections.backend(found.connection).jobs.apply([guarded]))
      return verdict === 'applied'
    },
    prune: async (options = {}) => prune(connections, runtime, options),
  }
}

async function prune(connections: Connections, runtime: Runtime, options: PruneOptions): Promise<number> {
  checkKnownOptions(options, ['olderThan', 'queue', 'connection'], 'prune()')
  const { olderThan = DEFAULTS.deadLetterPruneMs, queue, connection } = options
  const olderThanMs = parseDuration(olderThan, 'olderThan')
  const rule = {
    status: 'failed',
    olderThanMs,
    ...(queue !== undefined && { queue: checkName(queue, 'queue') }),
  } as const
  const asked = connection ?? (queue === undefined ? undefined : connections.ofQueue(queue))
  let pruned = 0
  for (const name of connections.asked(asked)) {
    const store = connections.backend(name).jobs
    for (let pass = 0; pass < PRUNE_PASSES_MAX; pass++) {
      const gone = await retryStore(runtime, () => store.prune([rule], LIMITS.maintenanceBatchMax))
      pruned += gone
      if (gone < LIMITS.maintenanceBatchMax) break
    }
  }
  return pruned
}

/** Page by page towards older jobs: one that fails again meanwhile keeps its place and is not met twice. */
async function replayMany(
  connections: Connections,
  runtime: Runtime,
  filter: JobListFilter,
  options: ReplayManyOptions,
): Promise<ReplayCount> {
  checkKnownOptions(options, ['actor', 'dryRun', 'limit', 'perSecond', 'asNew'], 'replayMany()')
  const actor = actorOf(options)
  const limit = checkInteger(options.limit ?? LIMITS.bulkJobsMax, 'limit', 1, LIMITS.bulkJobsMax)
  const perSecond = options.perSecond === undefined ? Infinity : checkInteger(options.perSecond, 'perSecond', 1, 10_000)
  const connection = filter.connection ?? (filter.queue === undefined ? 'default' : connections.ofQueue(filter.queue))
  const backend = connections.backend(connection)
  const stored = toJobFilter(filter, backend.capabilities)
  let [matched, replayed] = [0, 0]
  let cursor: string | undefined
  do {
    const size = Math.min(LIMITS.pageSizeMax, limit - matched, perSecond)
    const request = { limit: size, isFresh: true, ...(cursor !== undefined && { cursor }) }
    const page = await retryStore(runtime, () => backend.query.list(stored, request))
    matched += page.items.length
    cursor = page.nextCursor
    if (options.dryRun) continue
    const open = page.items.filter((job) => !wasCopied(job))
    if (options.asNew) replayed += (await replayCopies(backend, runtime, open, actor)).length
    else replayed += (await replaySame(backend, runtime, open, actor)).filter((verdict) => verdict === 'applied').length
    const isLast = cursor === undefined || matched >= limit
    if (!isLast && perSecond !== Infinity) await sleep(runtime.clock, (page.items.length / perSecond) * 1_000)
  } while (cursor !== undefined && matched < limit)
  return { matched, replayed, skipped: options.dryRun ? 0 : matched - replayed }
}

function actorOf({ actor }: ReplayOptions): string {
  return actor === undefined ? ACTOR : checkKey(actor, 'value of actor')
}

function keyTaken(job: StoredJob): MillraceError {
  const message = `job ${job.id} cannot be replayed: another live job holds its unique key ${JSON.stringify(job.uniqueKey)}; wait for it, or use replayAsNew()`
  return new MillraceError('UNIQUE_KEY_TAKEN', message, { details: { jobId: job.id } })
}

function notReplayable(job: StoredJob): MillraceError {
  const message = `job ${job.id} is ${job.status}: only failed jobs can be replayed`
  return new MillraceError('NOT_REPLAYABLE', message, { details: { jobId: job.id, status: job.status } })
}
