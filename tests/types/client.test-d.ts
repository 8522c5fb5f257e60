// Checked by tsc alone: the types of the client. Each @ts-expect-error is a promise.
import { z } from 'zod'
import type { Client } from '../../src/client/client-types.ts'
import { createClient } from '../../src/client/client.ts'
import { defineJob } from '../../src/client/define-job.ts'
import type { RunContext } from '../../src/core/definition.ts'
import type { JobHandle } from '../../src/client/handle.ts'
import type { Millrace } from '../../src/millrace.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { TestMillrace } from '../../src/testing/types.ts'

const welcome = defineJob({
  name: 'send-welcome',
  input: z.object({ to: z.string(), template: z.string() }),
  run: async () => ({ messageId: 'm' }),
})
const resize = defineJob({ name: 'resize', run: ({ input }: RunContext<{ width: number }>) => input.width })
const tick = defineJob({ name: 'tick', run: () => undefined })
const parsed = defineJob({
  name: 'parsed',
  input: z.object({ day: z.string().transform((day) => day.length) }),
  run: ({ input }) => input.day,
})

declare const mill: Client<readonly [typeof welcome, typeof resize, typeof tick, typeof parsed]>
declare const loose: Client
declare const connections: Readonly<Record<string, Backend>>
declare const runtime: Runtime

async function created(): Promise<void> {
  const own = createClient({ jobs: [welcome, resize], connections, runtime })
  const handle: JobHandle<number> = await own.enqueue('resize', { width: 1 })
  void handle
  const inside = own.internals.through(async () => ({ ok: true, results: [] }))
  await inside.enqueue('resize', { width: 1 })
  // @ts-expect-error not one of its jobs
  await own.enqueue('tick')
  // @ts-expect-error unknown option
  createClient({ jobs: [], connections, runtime, conections: {} })
}

async function enqueues(): Promise<void> {
  const handle: JobHandle<{ messageId: string }> = await mill.enqueue(welcome, { to: 'a', template: 'b' })
  const named: JobHandle<{ messageId: string }> = await mill.enqueue(
    'send-welcome',
    { to: 'a', template: 'b' },
    { priority: 'high' },
  )
  const { messageId }: { messageId: string } = await handle.result()
  const width: number = await mill.enqueueAndWait(resize, { width: 3 }, { priority: 1 }, { timeout: '5s' })
  void [named, messageId, width]
  await mill.enqueue(tick)
  await mill.enqueue('tick')
  await mill.enqueueAndWait(tick)
  await mill.enqueueAndWait('tick', undefined, {}, { timeout: '5s' })
  // @ts-expect-error the input is missing
  await mill.enqueueAndWait(resize)
  await mill.enqueue(parsed, { day: 'monday' })
  await loose.enqueue('anything', { at: 'all' })

  // @ts-expect-error wrong input
  await mill.enqueue(welcome, { to: 1, template: 'b' })
  // @ts-expect-error wrong input by name
  await mill.enqueue('send-welcome', { to: 1, template: 'b' })
  // @ts-expect-error a field is missing
  await mill.enqueue(welcome, { to: 'a' })
  // @ts-expect-error a field too many
  await mill.enqueue(welcome, { to: 'a', template: 'b', extra: 1 })
  // @ts-expect-error the input is missing
  await mill.enqueue(welcome)
  // @ts-expect-error unknown name
  await mill.enqueue('send-welcom', { to: 'a', template: 'b' })
  // @ts-expect-error unknown option
  await mill.enqueue(resize, { width: 1 }, { prio: 1 })
  // @ts-expect-error wrong option value
  await mill.enqueue(resize, { width: 1 }, { delay: '5 minutes' })
  // @ts-expect-error the result is a number
  const wrong: JobHandle<string> = await mill.enqueue(resize, { width: 1 })
  // @ts-expect-error the producer passes text, not the parsed number
  await mill.enqueue(parsed, { day: 6 })
  void wrong
}

async function bulk(): Promise<void> {
  const [first, second] = await mill.enqueueMany([
    [welcome, { to: 'a', template: 'b' }],
    ['resize', { width: 1 }, { priority: 1 }],
  ])
  const message: JobHandle<{ messageId: string }> = first
  const width: JobHandle<number> = second
  void [message, width]
  const widths = [1, 2, 3]
  const handles = await mill.enqueueMany(widths.map((one) => [resize, { width: one }] as const))
  const each: readonly JobHandle<number>[] = handles
  void each
  await mill.enqueueMany([[tick], [tick, undefined, { delay: '1s' }]])
  await mill.enqueueMany([
    [welcome, { to: 'a', template: 'b' }],
    // @ts-expect-error wrong input in the second line
    [resize, { width: 'wide' }],
  ])
}

async function batches(): Promise<void> {
  const batch = await mill.batch('import', { onComplete: [resize, { width: 1 }], onFailure: ['tick', undefined] })
  await mill.batch('import', { onComplete: [tick], onFailure: ['tick'] })
  // @ts-expect-error the input of a callback is missing
  await mill.batch('import', { onComplete: [resize] })
  const handle: JobHandle<number> = await batch.add(resize, { width: 1 })
  void handle
  await batch.addMany([[welcome, { to: 'a', template: 'b' }]])
  // @ts-expect-error wrong input
  await batch.add(resize, { width: '1' })
  // @ts-expect-error wrong input of a callback
  await mill.batch('import', { onComplete: [resize, { width: '1' }] })
  await mill.enqueueBatch('import', [[resize, { width: 1 }]], { onSuccess: [welcome, { to: 'a', template: 'b' }] })
  // @ts-expect-error wrong input of a callback
  await mill.enqueueBatch('import', [[resize, { width: 1 }]], { onSuccess: [welcome, { to: 'a' }] })
  // @ts-expect-error wrong input of an entry
  await mill.enqueueBatch('import', [[resize, { width: 'a' }]])
  await mill.enqueue(resize, { width: 1 }, { batch, after: [handle, { job: handle, onFailure: 'continue' }] })
}

async function flowsAndSchedules(): Promise<void> {
  const flow = await mill.flow({
    job: resize,
    input: { width: 1 },
    options: { priority: 1 },
    children: [
      { job: welcome, input: { to: 'a', template: 'b' }, children: [{ job: 'tick' }] },
      { job: 'resize', input: { width: 2 } },
    ],
  })
  const root: JobHandle<number> = flow.root
  void root
  // @ts-expect-error wrong input in the root
  await mill.flow({ job: resize, input: { width: 'a' } })
  // @ts-expect-error wrong input in a child
  await mill.flow({ job: resize, input: { width: 1 }, children: [{ job: welcome, input: { to: 'a' } }] })
  // @ts-expect-error unknown job in a child
  await mill.flow({ job: resize, input: { width: 1 }, children: [{ job: 'nobody', input: {} }] })

  await mill.schedules.upsert('nightly', {
    job: resize,
    input: { width: 1 },
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
  })
  await mill.schedules.upsert('often', { job: 'tick', every: '10m' })
  // @ts-expect-error wrong input
  await mill.schedules.upsert('nightly', { job: resize, input: { width: 'a' }, cron: '0 3 * * *' })
  // @ts-expect-error the input is missing
  await mill.schedules.upsert('nightly', { job: resize, cron: '0 3 * * *' })
  // @ts-expect-error unknown name
  mill.metadata('nobody')
}

interface Receipt {
  readonly id: string
  readonly note?: string
}

/** The encoder guards what JSON cannot carry; types need not have an index signature for it. */
async function inside({ idempotent, enqueue, progress, metadata }: RunContext<unknown>, receipt: Receipt) {
  await idempotent('charge', async () => {
    await metadata.set('last', receipt)
  })
  const same: Receipt = await idempotent('receipt', () => receipt)
  progress(receipt)
  progress(50)
  await enqueue(tick)
  await enqueue(tick, undefined, { batch: 'same' })
  await enqueue(resize, { width: 1 })
  // @ts-expect-error the input is missing
  await enqueue(resize)
  // @ts-expect-error wrong input
  await enqueue(resize, { width: 'a' })
  return same
}

function clientsAreClients(
  whole: Millrace<readonly [typeof welcome, typeof resize, typeof tick]>,
  test: TestMillrace<readonly [typeof welcome, typeof resize]>,
): void {
  const anyMill: Millrace = whole
  const anyClient: Client = whole
  const someClient: Client<readonly [typeof resize]> = whole
  const testClient: Client<readonly [typeof welcome]> = test
  void [anyMill, anyClient, someClient, testClient]
}
void [created, enqueues, bulk, batches, flowsAndSchedules, inside, clientsAreClients]
