// The guard of payloads, and what a handler gives back to a producer in another process.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { gate } from '../features/support.ts'
import { until } from '../postgres/faults/until.ts'
import type { OpenPlace } from './place.ts'

const echo = defineJob({ name: 'echo', run: ({ input }: RunContext<unknown>) => input })

export function results(place: OpenPlace): void {
  test('J7 what is too large, not JSON or a secret is refused with its field, and nothing is stored', async () => {
    await using at = await place()
    const mill = await at.process([echo], { secrets: { mode: 'refuse' } })
    const tooLarge = mill.enqueue(echo, { body: 'x'.repeat(300_000) })
    await expect(tooLarge).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    await expect(tooLarge).rejects.toThrow(/300011 bytes.*262144.*claim-check/)
    await expect(mill.enqueue(echo, { user: { born: new Date(0) } })).rejects.toThrow(/payload\.user\.born is a Date/)
    const secret = mill.enqueueMany([
      [echo, 1],
      [echo, { db: { password: 'hunter2' } }],
    ])
    await expect(secret).rejects.toMatchObject({ code: 'PAYLOAD_SECRET' })
    await expect(secret).rejects.toThrow(/payload\.db\.password/)
    expect((await mill.jobs.list()).items).toEqual([])
  })

  test('J7 whatever JSON can say comes to the handler and back as it was', async () => {
    await using at = await place()
    const [producer, worker] = [await at.process([echo]), await at.process([echo])]
    await worker.work()
    const inputs = [
      null,
      '',
      '\u0001 in a text, \ud83d\ude80, \u2028, "quotes" and \\ signs',
      { z: 1, a: [true, false, null, {}], ключ: -0.1, nested: { deep: [[[[1]]]] } },
      [9_007_199_254_740_991, 1e-7, 1e300],
      'x'.repeat(60_000),
    ]
    const handles = await producer.enqueueMany(inputs.map((input) => [echo, input] as const))
    for (const [index, handle] of handles.entries()) expect(await handle.result()).toEqual(inputs[index])
  })

  test('J8 a producer awaits the typed result of a job that runs in another process', async () => {
    await using at = await place()
    const sum = defineJob({
      name: 'sum',
      run: async ({ input }: RunContext<{ readonly a: number; readonly b: number }>) => ({ sum: input.a + input.b }),
    })
    const bad = defineJob({
      name: 'bad',
      attempts: 1,
      run: (): string => {
        throw Object.assign(new Error('boom'), { code: 'E_BOOM' })
      },
    })
    const [producer, worker] = [await at.process([sum, bad]), await at.process([sum, bad])]
    await worker.work()
    const answer: { sum: number } = await producer.enqueueAndWait(sum, { a: 2, b: 3 })
    expect(answer).toEqual({ sum: 5 })
    await expect(producer.enqueueAndWait(bad, undefined)).rejects.toMatchObject({
      code: 'JOB_FAILED',
      cause: { message: 'boom', code: 'E_BOOM' },
    })
    const nobody = await producer.enqueue(sum, { a: 0, b: 0 }, { delay: '1h' })
    await expect(nobody.result({ timeout: 100 })).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' })
    // Watched before the cancel: its answer may overtake the cancel's own.
    const waiting = expect(nobody.result()).rejects.toMatchObject({ code: 'JOB_CANCELLED' })
    await worker.jobs.cancel(nobody.id)
    await waiting
  })

  test('J8 progress and log lines are seen from another process while the job runs', async () => {
    await using at = await place()
    const [halfway, end] = [gate(), gate()]
    const stepping = defineJob({
      name: 'stepping',
      async run({ progress, log }) {
        log.info('begun')
        progress({ step: 2, of: 4 })
        halfway.open()
        await end.opened
        log.warn('almost done')
        progress(100)
      },
    })
    const [producer, worker] = [await at.process([stepping]), await at.process([stepping])]
    await worker.work()
    const handle = await producer.enqueue(stepping)
    await halfway.opened
    // With tokens a run shows as running a quarter of a second after its start; its progress may be there before.
    const isSeen = async (): Promise<boolean> => {
      const seen = await producer.jobs.get(handle)
      return seen?.status === 'running' && seen.progress !== null
    }
    await until(isSeen, 'the first progress')
    expect(await producer.jobs.get(handle)).toMatchObject({ status: 'running', progress: { step: 2, of: 4 } })
    await until(async () => (await producer.jobs.logs(handle)).length === 1, 'the first line')
    end.open()
    await handle.result()
    expect(await producer.jobs.get(handle)).toMatchObject({ status: 'completed', progress: 100 })
    expect(await producer.jobs.logs(handle)).toMatchObject([
      { attempt: 1, level: 'info', message: 'begun' },
      { attempt: 1, level: 'warn', message: 'almost done' },
    ])
  })
}
