// A small application to test: mails, charges that fail, and a report made of parts.
import { z } from 'zod'
import { defineJob, exponential, fixed } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'

export const sendMail = defineJob({
  name: 'send-mail',
  queue: 'mail',
  input: z.object({ to: z.string(), subject: z.string().default('hello'), tags: z.array(z.string()).optional() }),
  run: async ({ input, log, progress }) => {
    log.info(`to ${input.to}`)
    progress(50)
    progress(100)
    return { sent: input.to, subject: input.subject }
  },
})

export class CardDeclined extends Error {
  override readonly name = 'CardDeclined'
}

export const charge = defineJob({
  name: 'charge',
  queue: 'payments',
  retry: exponential({ attempts: 3, base: '10s', factor: 2, jitter: 0.3 }),
  run: ({ input }: RunContext<{ readonly cents: number }>) => {
    throw new CardDeclined(`no ${input.cents} cents`)
  },
})

/** Welcomes a user: enqueues two more jobs from inside. */
export const signUp = defineJob({
  name: 'sign-up',
  run: async ({ input, enqueue }: RunContext<{ readonly user: string }>) => {
    await enqueue(sendMail, { to: input.user })
    await enqueue(sendMail, { to: input.user, subject: 'tips' }, { delay: '1d' })
  },
})

export const part = defineJob({
  name: 'part',
  run: ({ input }: RunContext<{ readonly size: number }>) => {
    if (input.size < 0) throw new RangeError('a part cannot be smaller than nothing')
    return { size: input.size }
  },
  retry: fixed({ attempts: 1 }),
})

export const whole = defineJob({
  name: 'whole',
  run: async ({ parents }: RunContext<null>) => {
    const results = (await parents()).map(({ result }) => result as { readonly size: number } | null)
    return results.reduce((sum, result) => sum + (result?.size ?? 0), 0)
  },
})

export const tick = defineJob({ name: 'tick', run: ({ job }) => job.runAt.toISOString() })

export const JOBS = [sendMail, charge, signUp, part, whole, tick] as const
