// Health and scale signals over every store that lives in a server: the report of a process that works, over its real port.
import { describe, expect, onTestFinished, test } from 'vitest'
import { createOpsServer, defineJob } from '../../src/index.ts'
import type { HealthReport, Millrace, ScaleSignal } from '../../src/index.ts'
import { gate } from '../features/support.ts'
import { until } from '../support/until.ts'
import type { OpenPlace } from './place.ts'

export interface Answer<Body> {
  readonly status: number
  readonly body: Body
}

/** The port of this process, and a way to ask it. */
export async function portOf(mill: Pick<Millrace, 'health'>) {
  const { health } = mill
  const sources = {
    health: () => health.report(),
    ready: () => health.answers(),
    scale: (queue: string) => health.scale(queue),
  }
  const server = createOpsServer({ port: 0, sources })
  await server.start()
  onTestFinished(() => server.stop())
  return async <Body>(path: string): Promise<Answer<Body>> => {
    const response = await fetch(`${server.url}${path}`, { headers: { connection: 'close' } })
    return { status: response.status, body: (await response.json()) as Body }
  }
}

export function health(place: OpenPlace, kinds: readonly ('postgres' | 'redis')[]): void {
  describe('health', () => {
    test('O3 the report names servers, depths, recent counts, dead letters, workers and the leader', async () => {
      await using at = await place()
      const door = gate()
      const slow = defineJob({ name: 'slow', queue: 'slow', run: () => door.opened })
      const quick = defineJob({ name: 'quick', run: () => undefined })
      const broken = defineJob({ name: 'broken', attempts: 1, run: () => Promise.reject(new Error('no')) })
      const mill = await at.process([slow, quick, broken])
      const worker = await mill.work({ concurrency: 4 })
      const ask = await portOf(mill)
      const first = await ask<HealthReport>('/health')
      expect(first.body, 'one look tells no rates').toMatchObject({ state: 'ok', recent: null })

      await mill.enqueue(slow, undefined)
      await mill.enqueue(quick, undefined, { delay: '1h' })
      const failed = await mill.enqueue(broken, undefined)
      const done = await mill.enqueueMany(Array.from({ length: 3 }, () => [quick, undefined] as const))
      await Promise.all(done.map(({ id }) => mill.result(id)))
      await mill.result(failed.id).catch(() => undefined)
      let report = first.body
      const isSeen = async (): Promise<boolean> => {
        report = (await ask<HealthReport>('/health')).body
        const { completed, failed: dead, running } = report.totals
        return completed === 3 && dead === 1 && running === 1
      }
      await until('the report to show it', isSeen)
      expect(report.servers.map(({ kind }) => kind)).toEqual(kinds)
      for (const { pingMs, clients } of report.servers) {
        expect(pingMs).toBeGreaterThan(0)
        expect(clients).toBeGreaterThan(0)
      }
      const redis = report.servers.find(({ kind }) => kind === 'redis')
      if (redis !== undefined) expect(redis.memory?.usedBytes).toBeGreaterThan(0)
      expect(report).toMatchObject({
        state: 'ok',
        problems: [],
        deadLetters: 1,
        workers: { alive: 1, silent: 0, slots: 4 },
        recent: { completed: 3, failed: 1, arrived: 6 },
        totals: { scheduled: 1 },
      })
      expect(report.leaders).toMatchObject([{ connection: 'default', holder: expect.any(String) as string }])
      door.open()
      await worker.stop()
    })

    test('P3 scale signals count what waits and runs, and stand still while a queue is paused', async () => {
      await using at = await place()
      const door = gate()
      const slow = defineJob({ name: 'slow', queue: 'mail', run: () => door.opened })
      const mill = await at.process([slow])
      const worker = await mill.work({ concurrency: 2 })
      await mill.enqueueMany(Array.from({ length: 7 }, () => [slow, undefined] as const))
      const ask = await portOf(mill)
      let signal: ScaleSignal | undefined
      const isSeen = async (): Promise<boolean> => {
        signal = (await ask<ScaleSignal>('/scale?queue=mail')).body
        return signal.running === 2 && signal.ready === 5
      }
      await until('two to run', isSeen)
      expect(signal).toMatchObject({ queue: 'mail', value: 7, workers: 1, slots: 2, wantedWorkers: 4, paused: false })
      expect(signal?.oldestReadySeconds).toBeGreaterThanOrEqual(0)
      await mill.queues.pause('mail')
      const isPaused = async (): Promise<boolean> => (await ask<ScaleSignal>('/scale?queue=mail')).body.paused
      await until('the pause to show', isPaused)
      expect((await ask<ScaleSignal>('/scale?queue=mail')).body.value).toBe(2)
      expect((await ask('/scale?queue=nowhere')).status).toBe(404)
      door.open()
      await worker.stop()
    })
  })
}
