// Cancelling the jobs of a batch, page by page.
import { FINAL_STATUSES, JOB_STATUSES } from '../core/job.ts'
import type { BatchId, JobStatus } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import type { Connections } from './connections.ts'
import type { Ending } from './ending.ts'

const LIVE = JOB_STATUSES.filter((status) => !(FINAL_STATUSES as readonly JobStatus[]).includes(status))
const CANCEL_PASSES_MAX = 3

/** The store takes no more jobs, so the list only shrinks; should this process die, maintenance goes on. */
export async function cancelBatchJobs(
  batch: BatchId,
  connection: string,
  connections: Connections,
  ending: Ending,
): Promise<number> {
  const { query } = connections.backend(connection)
  let reached = 0
  for (let pass = 0; pass < CANCEL_PASSES_MAX; pass++) {
    let left = 0
    let cursor: string | undefined
    do {
      const request = { limit: LIMITS.pageSizeMax, isFresh: true, ...(cursor !== undefined && { cursor }) }
      const page = await query.list({ batch, status: LIVE }, request)
      const refs = page.items.filter((job) => !job.cancelRequested).map(({ id }) => ({ id, connection }))
      const answers = await ending.cancel(refs, 'its batch was cancelled')
      reached += answers.filter((answer) => answer === 'cancelled' || answer === 'requested').length
      left += refs.length
      cursor = page.nextCursor
    } while (cursor !== undefined)
    if (left === 0) break
  }
  return reached
}
