// The insert of the hybrid: plain jobs of queues that are offered become unmarked runs with a lease at once; the caller has
// the job and needs no more than that to write its token. All others go the way of the backend.
import type { NewJob } from '../../core/job.ts'
import type { MintReply, Offers } from './ledger-port.ts'
import { createInsert } from './insert.ts'
import { NO_NEWS, parseNews, wordsOf } from './ledger-rows.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'
import type { PostgresStore } from './store.ts'

export function createMint(store: PostgresStore): (jobs: readonly NewJob[], offers: Offers) => Promise<MintReply> {
  const insert = createInsert(store)
  return async (jobs, offers) => {
    const { reply, minted } = await insert(jobs, offers)
    if (minted === null) return { reply, leases: jobs.map(() => 0), nowMs: 0, defaults: new Map(), news: NO_NEWS }
    const [leases, mintedIds, nowMs, priorities, attempts, news] = minted
    return {
      reply,
      leases: leasesOf(jobs, leases, mintedIds),
      nowMs: Number(nowMs ?? 0),
      defaults: defaultsOf(jobs, { leases, priorities, attempts }),
      news: isAbsent(news) ? NO_NEWS : parseNews(news),
    }
  }
}

type Column = Row[number] | undefined

/** In the order of the call; with the ids of those that were minted, where not all of them were. */
function leasesOf(jobs: readonly NewJob[], leases: Column, mintedIds: Column): readonly number[] {
  const numbers = wordsOf(leases).map(Number)
  if (numbers.length === jobs.length) return numbers
  const byId = new Map(wordsOf(mintedIds).map((id, index) => [id, numbers[index]!]))
  return jobs.map(({ id }) => byId.get(id) ?? 0)
}

function defaultsOf(
  jobs: readonly NewJob[],
  { leases, priorities, attempts }: { readonly leases: Column; readonly priorities: Column; readonly attempts: Column },
): MintReply['defaults'] {
  if (isAbsent(leases)) return new Map()
  const tries = wordsOf(attempts).map(Number)
  const queues = [...new Set(jobs.map(({ queue }) => queue))]
  return new Map(
    wordsOf(priorities).map((priority, index) => [
      queues[index]!,
      { priority: Number(priority), maxAttempts: tries[index]! },
    ]),
  )
}
