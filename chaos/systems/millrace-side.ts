// Batches and a schedule beside the load, in a queue of their own, and what the store says of them afterwards.
import { defineJob, fixed } from '../../src/index.ts'
import type { Client, Job, Millrace } from '../../src/index.ts'
import { inBooks } from '../books.ts'
import type { BatchFacts, NewBatch, SideFacts } from '../system.ts'
import { PAGE, jobsIn } from './millrace-jobs.ts'

export const SIDE_QUEUE = 'side'

const SCHEDULE = 'chaos-tick'
const TICK_MS = 1_000
const EVERY_TICK = '* * * * * *'
const CATCH_UP = 100
const BATCH_EVERY_MS = 500
const BATCH_SIZE = 10

const member = defineJob({
  name: 'member',
  queue: SIDE_QUEUE,
  attempts: 5,
  retry: fixed({ delay: 10, jitter: 0 }),
  run: async ({ input }: { readonly input: { readonly longMs: number } }) => {
    if (input.longMs > 0) await new Promise((resolve) => setTimeout(resolve, input.longMs))
  },
})
const tick = defineJob({ name: 'tick', queue: SIDE_QUEUE, run: () => null })
const done = defineJob({
  name: 'batch-done',
  queue: SIDE_QUEUE,
  run: ({ input }: { readonly input: { readonly batch: string } }) => input.batch,
})

export const SIDE_JOBS = [member, tick, done] as const

export type SideClient = Pick<Client<typeof SIDE_JOBS>, 'enqueueBatch' | 'schedules'>

/** A batch twice a second and a tick every second, until it is closed. */
export async function openSideLoad(mill: SideClient, ledger: string): Promise<{ close(): Promise<void> }> {
  await mill.schedules.upsert(SCHEDULE, { job: tick, cron: EVERY_TICK, misfire: { catchUp: CATCH_UP } })
  const pending = new Set<Promise<unknown>>()
  let no = 0
  const timer = setInterval(() => {
    const batch = { name: `${process.pid}-${(no += 1)}`, size: BATCH_SIZE, longMs: 0 }
    const made = inBooks(ledger, batch, () => enqueueBatch(mill, batch))
      // Told to its caller, and not acknowledged; what of it is stored is counted all the same.
      .catch(() => undefined)
      .finally(() => pending.delete(made))
    pending.add(made)
  }, BATCH_EVERY_MS)
  return {
    async close() {
      clearInterval(timer)
      await Promise.all(pending)
    },
  }
}

export async function enqueueBatch(mill: SideClient, { name, size, longMs }: NewBatch): Promise<void> {
  const entries = Array.from({ length: size }, () => [member, { longMs }] as const)
  await mill.enqueueBatch(name, entries, { onComplete: [done, { batch: name }] })
}

export async function sideFacts(mill: Millrace): Promise<SideFacts> {
  const jobs: Job[] = []
  for await (const job of jobsIn(mill, SIDE_QUEUE)) jobs.push(job)
  const callbacks = jobs.flatMap(
    ({ name, payload }) => (name === done.name ? [(payload as { batch: string }).batch] : []), // made above
  )
  const ticksMs = jobs.flatMap(({ schedule }) => (schedule?.name === SCHEDULE ? [schedule.tick.getTime()] : []))
  return { batches: await batchesOf(mill, jobs, callbacks), ticksMs, tickEveryMs: TICK_MS }
}

async function batchesOf(
  mill: Millrace,
  jobs: readonly Job[],
  callbacks: readonly string[],
): Promise<readonly BatchFacts[]> {
  const found: BatchFacts[] = []
  let cursor: string | undefined
  do {
    const page = await mill.batches.list({ limit: PAGE, ...(cursor !== undefined && { cursor }) })
    for (const { id, name, progress, sealed, finishedAt } of page.items) {
      const own = jobs.filter(({ batch }) => batch === id)
      found.push({
        name,
        counted: { total: progress.total, completed: progress.completed },
        recounted: { total: own.length, completed: own.filter(({ status }) => status === 'completed').length },
        isSealed: sealed,
        isFinished: finishedAt !== null,
        callbacks: callbacks.filter((batch) => batch === name).length,
      })
    }
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}
