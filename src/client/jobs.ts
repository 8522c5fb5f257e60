// Looking at jobs and ending them: get, list, counts, attempts, logs, cancel, remove. Without a named
// connection an id is looked for on all of them.
import type { JobId } from '../core/job.ts'
import { checkKey, checkKnownOptions, checkName } from '../core/names.ts'
import type { QueueCounts } from '../store/job-query.ts'
import type { Connections } from './connections.ts'
import { checkReason } from './ending.ts'
import type { CancelAnswer, Ending, RemoveAnswer } from './ending.ts'
import { checkJobRef } from './ids.ts'
import type { JobRef } from './ids.ts'
import { checkFilterNames, toJobFilter, toPageRequest } from './job-filter.ts'
import type { JobListFilter, PageOptions } from './job-filter.ts'
import { viewAttempt, viewJob, viewLogLine } from './job-view.ts'
import type { Attempt, Job, JobLogLine } from './job-view.ts'

export interface JobPage {
  readonly items: readonly Job[]
  readonly nextCursor?: string
}

export interface Jobs {
  /** Also of a job of which only the archive knows: then it says `archived`. */
  get(id: JobRef): Promise<Job | null>
  /** Newest first. */
  list(filter?: JobListFilter, page?: PageOptions): Promise<JobPage>
  counts(queue?: string): Promise<readonly (QueueCounts & { readonly connection: string })[]>
  /** Every run and replay, oldest first. */
  attempts(id: JobRef): Promise<readonly Attempt[]>
  logs(id: JobRef): Promise<readonly JobLogLine[]>
  cancel(id: JobRef, options?: CancelOptions): Promise<CancelAnswer>
  cancel(ids: readonly JobRef[], options?: CancelOptions): Promise<readonly CancelAnswer[]>
  remove(id: JobRef, options?: { readonly actor?: string }): Promise<RemoveAnswer>
}

export interface CancelOptions {
  readonly reason?: string
  readonly actor?: string
}

export function createJobs(connections: Connections, ending: Ending): Jobs {
  async function onFirst<Value>(ref: JobRef, read: (connection: string, id: JobId) => Promise<readonly Value[]>) {
    const { id, connection } = checkJobRef(ref, 'job id')
    const answers = await Promise.all(connections.asked(connection).map((name) => read(name, id)))
    return answers.find((rows) => rows.length > 0) ?? []
  }

  async function readArchived(connection: string, id: JobId): Promise<readonly Job[]> {
    const [job] = (await connections.backend(connection).query.archived?.([id])) ?? []
    return job ? [{ ...viewJob(job, connection), archived: true }] : []
  }

  function cancel(id: JobRef, options?: CancelOptions): Promise<CancelAnswer>
  function cancel(ids: readonly JobRef[], options?: CancelOptions): Promise<readonly CancelAnswer[]>
  async function cancel(
    ids: JobRef | readonly JobRef[],
    options: CancelOptions = {},
  ): Promise<CancelAnswer | readonly CancelAnswer[]> {
    checkKnownOptions(options, ['reason', 'actor'], 'cancel()')
    const reason = checkReason(options.reason ?? 'cancelled by an operator')
    const actor = checkActor(options.actor)
    // All ids are checked before the first is touched.
    const refs = (isList(ids) ? ids : [ids]).map((ref) => checkJobRef(ref, 'job id'))
    const answers = await ending.cancel(refs, reason, actor)
    return isList(ids) ? answers : answers[0]!
  }

  return {
    async get(ref) {
      const { id, connection } = checkJobRef(ref, 'job id')
      const found = await connections.locate(id, connection)
      if (found !== null) return viewJob(found.job, found.connection)
      const [archived] = await onFirst(ref, async (name) => readArchived(name, id))
      return archived ?? null
    },
    async list(filter = {}, page = {}) {
      checkFilterNames(filter)
      const connection =
        filter.connection ?? (filter.queue === undefined ? 'default' : connections.ofQueue(filter.queue))
      const backend = connections.backend(connection)
      const { items, nextCursor } = await backend.query.list(
        toJobFilter(filter, backend.capabilities),
        toPageRequest(page),
      )
      const jobs = items.map((job) => viewJob(job, connection))
      return { items: jobs, ...(nextCursor !== undefined && { nextCursor }) }
    },
    async counts(queue) {
      if (queue !== undefined) checkName(queue, 'queue')
      const read = async (connection: string) =>
        (await connections.backend(connection).query.counts(queue)).map((counts) => ({ ...counts, connection }))
      return (await Promise.all(connections.names.map(read))).flat()
    },
    attempts: async (ref) =>
      (await onFirst(ref, (name, id) => connections.backend(name).query.attempts(id))).map(viewAttempt),
    logs: async (ref) => (await onFirst(ref, (name, id) => connections.backend(name).query.logs(id))).map(viewLogLine),
    cancel,
    async remove(ref, options = {}) {
      checkKnownOptions(options, ['actor'], 'remove()')
      const [answer] = await ending.remove([checkJobRef(ref, 'job id')], checkActor(options.actor))
      return answer!
    },
  }
}

function checkActor(actor: string | undefined): string | undefined {
  return actor === undefined ? undefined : checkKey(actor, 'value of actor')
}

// `Array.isArray` does not narrow readonly arrays out of a union.
function isList(ids: JobRef | readonly JobRef[]): ids is readonly JobRef[] {
  return Array.isArray(ids)
}
