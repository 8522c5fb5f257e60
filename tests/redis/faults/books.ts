// What a store of Redis says became of each job, for the books of a run (tests/postgres/faults/ledger.ts).
import type { Millrace } from '../../../src/index.ts'
import type { Booked } from '../../postgres/faults/ledger.ts'

/** Jobs that are not at their end. */
export async function liveIn(mill: Millrace): Promise<number> {
  const counts = (await mill.jobs.counts()).map((one) => one.counts)
  return counts.reduce((sum, one) => sum + one.queued + one.running + one.scheduled + one.blocked, 0)
}

export async function booksOf(mill: Millrace, queue?: string): Promise<readonly Booked[]> {
  const found: Booked[] = []
  let cursor: string | undefined
  do {
    const page = await mill.jobs.list(queue === undefined ? {} : { queue }, {
      limit: 200,
      ...(cursor !== undefined && { cursor }),
    })
    const booked = page.items.map(async ({ id, status }): Promise<Booked> => {
      const rows = await mill.jobs.attempts(id)
      return { id, status, rows: rows.length, successes: rows.filter((row) => row.status === 'success').length }
    })
    found.push(...(await Promise.all(booked)))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}
