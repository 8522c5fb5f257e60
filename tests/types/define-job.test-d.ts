// Checked by tsc alone: the types that `defineJob` infers. Each @ts-expect-error is a promise.
import { z } from 'zod'
import { defineJob } from '../../src/client/define-job.ts'
import type { AnyJob, InputOf, ResultOf, RunContext } from '../../src/core/definition.ts'
import { snooze } from '../../src/core/outcome.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <T extends true>(): T | undefined => undefined

const transformed = defineJob({
  name: 'transformed',
  queue: 'reports',
  input: z.object({ day: z.string().transform((text) => text.length), count: z.number().default(1) }),
  unique: { by: (input) => input.day },
  group: ({ day }) => day,
  limitKey: ({ day }) => day,
  async run({ input }) {
    const day: number = input.day
    const count: number = input.count
    return { total: day + count }
  },
})
same<Same<typeof transformed.name, 'transformed'>>()
same<Same<InputOf<typeof transformed>, { day: string; count?: number | undefined }>>()
same<Same<ResultOf<typeof transformed>, { total: number }>>()

const annotated = defineJob({
  name: 'annotated',
  group: (input) => input.to,
  run({ input }: RunContext<{ to: string }>) {
    return input.to.length
  },
})
same<Same<InputOf<typeof annotated>, { to: string }>>()
same<Same<ResultOf<typeof annotated>, number>>()

const signalling = defineJob({
  name: 'signalling',
  async run({ input }: RunContext<number>) {
    if (input > 3) return snooze('5s')
    return 'done' as const
  },
})
same<Same<ResultOf<typeof signalling>, 'done'>>()

const nothing = defineJob({ name: 'nothing', run: () => undefined })
same<Same<InputOf<typeof nothing>, unknown>>()

const jobs: readonly AnyJob[] = [transformed, annotated, signalling, nothing]
void jobs

void transformed.run({ day: 'monday' }).then((result) => result.total)
// @ts-expect-error the producer passes text, not the transformed number
void transformed.run({ day: 3 })
// @ts-expect-error a field is missing
void annotated.run({})
// @ts-expect-error the result is a number
void annotated.run({ to: 'a' }).then((result: string) => result)
// @ts-expect-error unknown option
defineJob({ name: 'a', que: 'b', run: () => 1 })
// @ts-expect-error no handler
defineJob({ name: 'a' })
// @ts-expect-error not a duration
defineJob({ name: 'a', timeout: '5 minutes', run: () => 1 })
// @ts-expect-error not a priority word
defineJob({ name: 'a', priority: 'urgent', run: () => 1 })
defineJob({
  name: 'a',
  // @ts-expect-error the schema gives text, the handler takes a number
  input: z.object({ to: z.string() }),
  run: ({ input }: RunContext<{ to: number }>) => input.to,
})
