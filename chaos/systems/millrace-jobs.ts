// All jobs of a queue of Millrace, page by page.
import type { Job, Millrace } from '../../src/index.ts'

export const PAGE = 200

export async function* pagesIn(mill: Millrace, queue: string): AsyncGenerator<readonly Job[]> {
  let cursor: string | undefined
  do {
    const page = await mill.jobs.list({ queue }, { limit: PAGE, ...(cursor !== undefined && { cursor }) })
    yield page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

export async function* jobsIn(mill: Millrace, queue: string): AsyncGenerator<Job> {
  for await (const page of pagesIn(mill, queue)) yield* page
}
