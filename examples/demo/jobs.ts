// The job kinds of the demo. The work is pretended; everything around it (schemas, retries, timeouts, keys,
// progress, signals) is what a real service would write.
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineJob, exponential, fail, fixed } from '../../src/index.ts'

export const sendEmail = defineJob({
  name: 'send-email',
  queue: 'email',
  input: z.object({ to: z.email(), template: z.string() }),
  timeout: '5s',
  async run({ signal, job }) {
    await sleep(40, undefined, { signal })
    return { messageId: `${job.id}@example.com` }
  },
})

export const resizeImage = defineJob({
  name: 'resize-image',
  queue: 'images',
  input: z.object({ file: z.string(), width: z.int().positive() }),
  async run({ input, signal, progress }) {
    // An error that is known to be permanent by its shape: the built-in classifier does not retry it.
    if (input.file.startsWith('broken')) throw Object.assign(new Error('not an image'), { name: 'ValidationError' })
    for (let percent = 0; percent < 100; percent += 20) {
      progress(percent)
      await sleep(120, undefined, { signal })
    }
    return { file: `${input.file}@${input.width}` }
  },
})

export const albumReady = defineJob({
  name: 'album-ready',
  queue: 'reports',
  input: z.object({ album: z.string() }),
  run: ({ input, log }) => log.info(`album ${input.album} is ready`),
})

export const chargeCard = defineJob({
  name: 'charge-card',
  queue: 'payments',
  input: z.object({ invoice: z.string(), customer: z.string(), cents: z.int().positive() }),
  // An invoice is charged once however often it is enqueued; charges of one customer go one after the other.
  unique: { by: ({ invoice }) => invoice },
  group: ({ customer }) => customer,
  async run({ input, idempotent, signal }) {
    if (input.customer === 'mallory') return fail('card declined')
    // Should this run die after the charge and before its end is stored, the next run gets the same receipt.
    return idempotent(`charge:${input.invoice}`, async () => {
      await sleep(120, undefined, { signal })
      return { receipt: `${input.invoice}-${input.cents}` }
    })
  },
})

/** How often the CRM refuses a record before it takes it. */
export const syncCrm = defineJob({
  name: 'sync-crm',
  queue: 'crm',
  input: z.object({ record: z.int(), refusals: z.int().min(0) }),
  retry: exponential({ attempts: 4, base: '200ms', max: '2s' }),
  async run({ input, attempt, signal }) {
    await sleep(80, undefined, { signal })
    if (attempt <= input.refusals) throw Object.assign(new Error('CRM answered 503'), { status: 503 })
    return { record: input.record }
  },
})

/** Flaky: some calls hang until the timeout aborts them, the next try goes through. */
export const callWebhook = defineJob({
  name: 'call-webhook',
  queue: 'webhooks',
  input: z.object({ url: z.url(), hangs: z.int().min(0) }),
  retry: fixed({ attempts: 3, delay: '300ms' }),
  timeout: '1s',
  async run({ input, attempt, signal }) {
    await sleep(attempt <= input.hangs ? 60_000 : 60, undefined, { signal })
    return { status: 204 }
  },
})

export const transcode = defineJob({
  name: 'transcode',
  queue: 'media',
  input: z.object({ video: z.string(), height: z.int() }),
  async run({ input, signal, progress }) {
    const steps = Math.ceil(input.height / 120)
    for (let step = 0; step < steps; step += 1) {
      progress(Math.round((step / steps) * 100))
      await sleep(150, undefined, { signal })
    }
    return { file: `${input.video}-${input.height}p` }
  },
})

/** Runs after its transcodes and reads their results. */
export const publishVideo = defineJob({
  name: 'publish-video',
  queue: 'media',
  input: z.object({ video: z.string() }),
  async run({ parents }) {
    const files = await parents()
    return { files: files.length }
  },
})

export const collectMetrics = defineJob({
  name: 'collect-metrics',
  queue: 'reports',
  run: async ({ metadata }) => ({ tick: await metadata.increment('ticks') }),
})

export const JOBS = [
  sendEmail,
  resizeImage,
  albumReady,
  chargeCard,
  syncCrm,
  callWebhook,
  transcode,
  publishVideo,
  collectMetrics,
] as const
