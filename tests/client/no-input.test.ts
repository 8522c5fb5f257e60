// Jobs whose input may be left out: nothing is passed, null is stored, and the schema sees nothing again.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineJob } from '../../src/client/define-job.ts'
import { setup } from './setup.ts'

const optional = defineJob({
  name: 'optional',
  input: z.object({ to: z.string() }).optional(),
  group: (input) => input?.to ?? 'nobody',
  run: ({ input }) => input?.to ?? 'nobody',
})
const usual = defineJob({
  name: 'usual',
  input: z.object({ to: z.string() }).default({ to: 'all' }),
  run: ({ input }) => input.to,
})
const nothing = defineJob({ name: 'nothing', input: z.void(), run: ({ input }) => String(input) })
const nullable = defineJob({ name: 'nullable', input: z.string().nullable(), run: ({ input }) => input })
const JOBS = [optional, usual, nothing, nullable] as const

describe('a schema that takes nothing', () => {
  test('is given nothing by a producer who passes none, and null is stored', async () => {
    const { mill } = setup({ jobs: JOBS })
    for (const job of [optional, usual, nothing] as const) {
      const { id } = await mill.enqueue(job)
      expect((await mill.jobs.get(id))?.payload).toBe(null)
    }
    const [, second] = await mill.enqueueMany([[usual], [nothing]])
    expect((await mill.jobs.get(second))?.payload).toBe(null)
    const [{ group } = { group: null }] = (await mill.jobs.list({ name: 'optional' })).items
    expect(group).toBe('nobody')
  })

  test('runs directly', async () => {
    expect(await optional.run(undefined)).toBe('nobody')
    expect(await usual.run(undefined)).toBe('all')
    expect(await nothing.run(undefined)).toBe('undefined')
    expect(await nullable.run(null)).toBe(null)
  })

  test('can be scheduled and started by hand', async () => {
    const { mill } = setup({ jobs: JOBS })
    await mill.schedules.upsert('often', { job: optional, every: '1h' })
    const { id } = await mill.schedules.runNow('often')
    expect((await mill.jobs.get(id))?.payload).toBe(null)
  })
})

test('a job that takes null is still told so', async () => {
  const { mill } = setup({ jobs: JOBS })
  await expect(mill.enqueue(nullable, undefined as never)).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
  await expect(mill.enqueue(optional, null as never)).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
  await mill.enqueue(nullable, null)
})
