// What the demo asks for: the queues and their limits, one fixed round of jobs whose ends are known
// beforehand, and an endless stream of random ones for the live table.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMillrace, memory } from '../../src/index.ts'
import type { Batch, InputOf, Millrace } from '../../src/index.ts'
import { JOBS, albumReady, callWebhook, chargeCard, collectMetrics } from './jobs.ts'
import { publishVideo, resizeImage, sendEmail, syncCrm, transcode } from './jobs.ts'

export type DemoMill = Millrace<typeof JOBS>

export const CONCURRENCY = 12
export const SCHEDULE = 'metrics'
/** The limits of the queues, in the words of the table. */
export const LIMITS: Readonly<Record<string, string>> = { email: '10/s', images: '4 at once' }

/** The demo may run for days; the default is 30 days. */
const KEPT = { retention: { completed: '1h', failed: '1d' } } as const

/** With no store named, Millrace brings its own PostgreSQL and keeps its data in `.millrace`. */
export function createDemoMill({ inMemory }: { readonly inMemory: boolean }): Promise<DemoMill> {
  return createMillrace({
    jobs: JOBS,
    ...(inMemory && { backend: memory() }),
    queues: {
      email: { ...KEPT, rate: { limit: 10, per: '1s', burst: 5 } },
      images: { ...KEPT, concurrency: 4 },
      payments: KEPT,
      crm: KEPT,
      webhooks: KEPT,
      media: KEPT,
      reports: KEPT,
    },
  })
}

const EMAILS = 40
const THUMBNAILS = 4
const ALBUM = 20
/** Each of these is refused this often; the last one more often than it has attempts. */
const CRM_REFUSALS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 9]
const WEBHOOK_HANGS = [0, 0, 1, 0, 0, 0, 1, 0, 2, 0]
const CUSTOMERS = ['ada', 'grace', 'linus', 'mallory', 'ada', 'grace', 'linus', 'ada', 'grace', 'ada']
const HEIGHTS = [360, 720, 1080]

type Ends = { readonly completed: number; readonly failed?: number; readonly cancelled?: number }

/** How the round must end, worked out from what goes in. The ticks of the schedule are not part of it. */
export const EXPECTED: {
  readonly queues: Readonly<Record<string, Ends>>
  readonly retries: number
  readonly deadLetters: readonly string[]
  readonly duplicates: number
} = {
  queues: {
    email: { completed: EMAILS + 1, cancelled: 1 },
    images: { completed: THUMBNAILS + ALBUM - 1, failed: 1 },
    payments: { completed: CUSTOMERS.length - 1, failed: 1 },
    crm: { completed: CRM_REFUSALS.length - 1, failed: 1 },
    webhooks: { completed: WEBHOOK_HANGS.length },
    media: { completed: HEIGHTS.length + 1 },
    reports: { completed: 1 },
  },
  // Every refused call but the last of the hopeless record, and every call that hung.
  retries: sum(CRM_REFUSALS.map((refusals) => Math.min(refusals, 3))) + sum(WEBHOOK_HANGS),
  deadLetters: ['charge-card: card declined', 'resize-image: not an image', 'sync-crm: CRM answered 503'],
  duplicates: 1,
}

export interface Round {
  /** On every job of this round: the store may hold those of other runs. */
  readonly tag: string
  readonly startedAt: Date
  readonly batch: Batch
  /** Enqueue calls that were answered with a job that was there before. */
  readonly duplicates: number
}

/** One of everything. Resolves when all of it is enqueued. */
export async function enqueueRound(mill: DemoMill): Promise<Round> {
  const startedAt = new Date()
  const run = newRun()
  const tag = `round:${run}`
  const own = { tags: [tag] } as const
  await startSchedule(mill)
  await mill.enqueueMany(times(EMAILS, (no) => [sendEmail, newsletter(no), own] as const))
  await mill.enqueue(sendEmail, newsletter(0), { ...own, delay: '2s' })
  const unwanted = await mill.enqueue(sendEmail, newsletter(0), { ...own, delay: '1h' })
  await unwanted.cancel('the reader has unsubscribed')
  const batch = await enqueueAlbum(mill, 'holiday', ALBUM, { withBroken: true, tags: [tag] })
  // Enqueued last, started before the waiting rest of the album.
  const urgent = { ...own, priority: 'high' } as const
  await mill.enqueueMany(times(THUMBNAILS, (no) => [resizeImage, { file: `thumb-${no}`, width: 120 }, urgent] as const))
  const invoices = CUSTOMERS.map((customer, no) => ({ invoice: `inv-${run}-${no}`, customer, cents: 900 + no }))
  await mill.enqueueMany(invoices.map((invoice) => [chargeCard, invoice, own] as const))
  const again = await mill.enqueue(chargeCard, invoices[0]!, own)
  await mill.enqueueMany(CRM_REFUSALS.map((refusals, record) => [syncCrm, { record, refusals }, own] as const))
  await mill.enqueueMany(
    WEBHOOK_HANGS.map((hangs) => [callWebhook, { url: 'https://example.com/hook', hangs }, own] as const),
  )
  await enqueueVideo(mill, 'launch', [tag])
  return { tag, startedAt, batch, duplicates: again.duplicate ? 1 : 0 }
}

/** Random jobs until the signal aborts. `onBatch` is told of every new album. */
export async function keepBusy(mill: DemoMill, signal: AbortSignal, onBatch: (batch: Batch) => void): Promise<void> {
  await startSchedule(mill)
  const run = newRun()
  for (let no = 1; !signal.aborted; no += 1) {
    const kinds = [
      () => mill.enqueue(sendEmail, newsletter(no)),
      () =>
        mill.enqueue(resizeImage, { file: `photo-${no}`, width: 640 }, { priority: pick(['high', 'normal', 'low']) }),
      () => mill.enqueue(chargeCard, { invoice: `live-${run}-${no}`, customer: pick(CUSTOMERS), cents: 900 }),
      () => mill.enqueue(syncCrm, { record: no, refusals: pick(CRM_REFUSALS) }),
      () => mill.enqueue(callWebhook, { url: 'https://example.com/hook', hangs: pick(WEBHOOK_HANGS) }),
    ]
    await pick(kinds)()
    if (no % 90 === 0) onBatch(await enqueueAlbum(mill, `album-${no}`, 8, { withBroken: false, tags: [] }))
    if (no % 120 === 0) await enqueueVideo(mill, `video-${no}`, [])
    await sleep(60 + Math.random() * 120, undefined, { signal }).catch(() => undefined)
  }
}

/** Every two seconds, on the even second. Ticks that fell between two runs of the demo are not made up for. */
async function startSchedule(mill: DemoMill): Promise<void> {
  await mill.schedules.upsert(SCHEDULE, {
    job: collectMetrics,
    cron: '*/2 * * * * *',
    misfire: 'skip',
    overlap: 'skip',
    enabled: true,
  })
}

interface AlbumOptions {
  readonly withBroken: boolean
  readonly tags: readonly string[]
}

function enqueueAlbum(mill: DemoMill, album: string, size: number, { withBroken, tags }: AlbumOptions) {
  const photos = times(size, (no) => {
    const file = `${withBroken && no === size ? 'broken' : album}-${no}`
    return [resizeImage, { file, width: 1600 }, { priority: 'low', tags }] as const
  })
  return mill.enqueueBatch(album, photos, { onComplete: [albumReady, { album }] })
}

async function enqueueVideo(mill: DemoMill, video: string, tags: readonly string[]): Promise<void> {
  const options = { tags }
  const children = HEIGHTS.map((height) => ({ job: transcode, input: { video, height }, options }))
  await mill.flow({ job: publishVideo, input: { video }, options, children })
}

/** Tells the invoices and jobs of one run from those of all others. */
function newRun(): string {
  return randomUUID().slice(0, 8)
}

function newsletter(no: number): InputOf<typeof sendEmail> {
  return { to: `reader-${no}@example.com`, template: 'newsletter' }
}

/** make(1) … make(count). */
function times<Value>(count: number, make: (no: number) => Value): Value[] {
  return Array.from({ length: count }, (_, index) => make(index + 1))
}

function pick<Value>(values: readonly Value[]): Value {
  return values[Math.floor(Math.random() * values.length)]!
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
