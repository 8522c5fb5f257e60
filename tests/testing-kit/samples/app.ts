// The application of docs/testing.md. The blocks of that page are taken from the files of this folder.
import { z } from 'zod'
import { defineJob, exponential } from '../../../src/index.ts'
import type { Client } from '../../../src/index.ts'

export const sendWelcome = defineJob({
  name: 'send-welcome',
  queue: 'mail',
  input: z.object({ email: z.string(), template: z.string().default('plain') }),
  retry: exponential({ attempts: 3, base: '10s' }),
  run: async ({ input, attempt, log }) => {
    if (input.email.endsWith('@down.example')) throw new Error(`no route to ${input.email}`)
    log.info(`mailed ${input.email}`)
    return { to: input.email, attempt }
  },
})

export const cleanUp = defineJob({ name: 'clean-up', run: () => 'swept' })

export const JOBS = [sendWelcome, cleanUp] as const

/** The code under test: it takes the Millrace as a parameter. */
export async function register(mill: Client<typeof JOBS>, email: string) {
  await mill.enqueue(sendWelcome, { email })
  await mill.enqueue(sendWelcome, { email, template: 'tips' }, { delay: '3d' })
}
