// The guard of payloads, and what a handler gives back: results, progress, log lines.
import { describe, expect, test } from 'vitest'
import { defineJob, jsonLogger } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { gate, setup } from './support.ts'

const anything = defineJob({ name: 'anything', run: ({ input }: RunContext<unknown>) => input })

describe('memory', () => {
  test('J7 a large payload is refused with its size, the limit and the claim-check pattern', async () => {
    const { mill } = await setup([anything])
    const refused = mill.enqueue(anything, { body: 'x'.repeat(300_000) })
    await expect(refused).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    await expect(refused).rejects.toThrow(/300011 bytes.*262144.*claim-check/)
    await expect(mill.enqueue(anything, { body: 'é'.repeat(140_000) })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    })
    const kept = await mill.enqueue(anything, 'x'.repeat(262_142))
    expect(await kept.status()).toBe('queued')
    expect((await mill.jobs.list()).items.length).toBe(1)
  })

  test('J7 a value that JSON cannot carry is refused with its field and what to do', async () => {
    const { mill } = await setup([anything])
    const cases: readonly (readonly [unknown, RegExp])[] = [
      [{ user: { born: new Date(0) } }, /payload\.user\.born is a Date; use toISOString/],
      [{ items: [1, 2n] }, /payload\.items\[1\] is a BigInt; use String/],
      [{ call: () => 1 }, /payload\.call is a function/],
      [{ a: undefined }, /payload\.a is undefined; leave the field out/],
      [{ at: new Map() }, /payload\.at is a Map.*Object\.fromEntries/],
      [{ n: Number.NaN }, /payload\.n is NaN/],
    ]
    for (const [input, message] of cases) await expect(mill.enqueue(anything, input)).rejects.toThrow(message)
    expect((await mill.jobs.list()).items).toEqual([])
  })

  test('J7 fields that look like secrets are warned about by default and refused by option', async () => {
    const lines: string[] = []
    const warning = await setup([anything], { logger: jsonLogger('warn', (line) => lines.push(line)) })
    await warning.mill.enqueue(anything, { user: { apiKey: 'sk-live' } })
    expect(lines.join('')).toContain('payload.user.apiKey')
    expect(lines.join('')).not.toContain('sk-live')
    const refusing = await setup([anything], { secrets: { mode: 'refuse', allow: ['token'] } })
    const refused = refusing.mill.enqueue(anything, { db: { password: 'hunter2' } })
    await expect(refused).rejects.toMatchObject({ code: 'PAYLOAD_SECRET' })
    await expect(refused).rejects.toThrow(/payload\.db\.password/)
    await expect(refused).rejects.not.toThrow(/hunter2/)
    await refusing.mill.enqueue(anything, { token: 'a page token' })
  })

  test('J8 a producer awaits a typed result', async () => {
    const sum = defineJob({
      name: 'sum',
      run: async ({ input }: RunContext<{ readonly a: number; readonly b: number }>) => ({ sum: input.a + input.b }),
    })
    const { clock, mill } = await setup([sum])
    await mill.work()
    const answer: { sum: number } = await clock.during(mill.enqueueAndWait(sum, { a: 2, b: 3 }))
    expect(answer).toEqual({ sum: 5 })
    const handle = await mill.enqueue('sum', { a: 1, b: 1 })
    expect((await clock.during(handle.result())).sum).toBe(2)
    expect(await clock.during(mill.result(handle.id))).toEqual({ sum: 2 })
  })

  test('J8 a wait ends with a typed error: failed with its cause, cancelled, not found, too long', async () => {
    const bad = defineJob({
      name: 'bad',
      attempts: 1,
      run: () => {
        throw Object.assign(new Error('boom'), { code: 'E_BOOM' })
      },
    })
    const { clock, mill } = await setup([bad, anything])
    const idle = await mill.enqueue(anything, 1, { delay: '1h' })
    await expect(clock.during(idle.result({ timeout: '2s' }), 3_000)).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
      retryable: true,
    })
    await mill.work()
    const failed = clock.during(mill.enqueueAndWait(bad, undefined))
    await expect(failed).rejects.toMatchObject({ code: 'JOB_FAILED', cause: { message: 'boom', code: 'E_BOOM' } })
    const waiting = idle.result()
    await idle.cancel()
    await expect(clock.during(waiting, 2_000)).rejects.toMatchObject({ code: 'JOB_CANCELLED' })
    await mill.jobs.remove(idle)
    await expect(clock.during(idle.result())).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  })

  test('J8 a wait ends with the reason of the signal of its caller', async () => {
    const { clock, mill } = await setup([anything])
    const handle = await mill.enqueue(anything, 1)
    const controller = new AbortController()
    const waiting = handle.result({ signal: controller.signal })
    controller.abort(new Error('the request is gone'))
    await expect(clock.during(waiting, 100)).rejects.toThrow('the request is gone')
    await mill.work()
    expect(await clock.during(handle.result())).toBe(1)
  })

  test('J8 a result above 64 KiB makes a dead letter that says so, and the work is not run again', async () => {
    let runs = 0
    const large = defineJob({
      name: 'large',
      run: () => {
        runs += 1
        return 'x'.repeat(70_000)
      },
    })
    const { clock, mill } = await setup([large])
    await mill.work()
    const failed = clock.during(mill.enqueueAndWait(large, undefined))
    await expect(failed).rejects.toMatchObject({ code: 'JOB_FAILED', cause: { code: 'RESULT_TOO_LARGE' } })
    await clock.advance(600_000)
    expect(runs).toBe(1)
  })

  test('J8 progress, a number or JSON, is seen while the job runs and too large progress is refused', async () => {
    const [halfway, end] = [gate(), gate()]
    let refusal: unknown
    const stepping = defineJob({
      name: 'stepping',
      async run({ progress }) {
        progress(10)
        progress({ step: 2, of: 4 })
        try {
          progress('x'.repeat(5_000))
        } catch (error) {
          refusal = error
        }
        halfway.open()
        await end.opened
        progress(100)
      },
    })
    const { clock, mill } = await setup([stepping])
    await mill.work()
    const handle = await mill.enqueue(stepping)
    await clock.during(halfway.opened)
    await clock.advance(50)
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'running', progress: { step: 2, of: 4 } })
    expect(refusal).toMatchObject({ code: 'PROGRESS_TOO_LARGE' })
    end.open()
    await clock.during(handle.result())
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'completed', progress: 100 })
  })

  test('J8 progress is an event', async () => {
    const job = defineJob({ name: 'job', run: ({ progress }) => progress(50) })
    const { clock, mill } = await setup([job])
    const seen: string[] = []
    mill.on('progress', ({ progress }) => seen.push(progress))
    await mill.work()
    await clock.during(mill.enqueueAndWait(job, undefined))
    await clock.advance(1_000)
    expect(seen).toEqual(['50'])
  })

  test('J8 log lines of every run are kept in order, bounded in number and length', async () => {
    const chatty = defineJob({
      name: 'chatty',
      attempts: 2,
      run({ log, attempt, input }: RunContext<number>) {
        log.info(`run ${attempt}`)
        log.warn('€'.repeat(4_000))
        for (let line = 2; line < input; line++) log.debug(`line ${line}`)
        if (attempt === 1) throw new Error('again')
      },
    })
    const { clock, mill } = await setup([chatty])
    await mill.work()
    const handle = await mill.enqueue(chatty, 1_200)
    await clock.during(handle.result())
    const lines = await mill.jobs.logs(handle)
    expect(lines.filter(({ attempt }) => attempt === 1).length).toBe(1_000)
    expect(lines.filter(({ attempt }) => attempt === 2).length).toBe(1_000)
    expect(lines[0]).toMatchObject({ attempt: 1, level: 'info', message: 'run 1' })
    expect(Buffer.byteLength(lines[1]!.message)).toBeLessThanOrEqual(4_096 + 64)
    expect(lines[999]!.message).toBe('line 999')
  })
})
