// The work of a child, in this process: what it tells its supervisor, up to its last word.
import { expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import type { MetricsSnapshot } from '../../src/observability/registry.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { ChildControl, runChild } from '../../src/supervisor/child-run.ts'
import type { FromChild } from '../../src/supervisor/messages.ts'
import { until } from '../support/until.ts'

const quick = defineJob({ name: 'quick', queue: 'mail', run: () => undefined })
const broken = defineJob({
  name: 'broken',
  queue: 'rest',
  attempts: 1,
  run() {
    throw new Error('broken')
  },
})
const METER = { read: () => ({ rssBytes: 1, cpuPercent: 0, loopLagMs: 0 }), stop: () => undefined }

test('P1 a child tells its queues, what ended in each, and at its end all that it has counted', async () => {
  const mill = await createMillrace({ jobs: [quick, broken], backend: memory() })
  onTestFinished(() => mill.stop({ deadline: 0 }))
  const control = new ChildControl(systemClock)
  const told: FromChild[] = []
  const running = runChild({
    mill,
    clock: systemClock,
    meter: METER,
    work: { queues: ['mail', 'rest'] },
    isQuiet: false,
    control,
    send: (message) => void told.push(message),
    metrics: () => mill.metrics.snapshot(),
  })
  await until('it to be ready', () => told.some(({ kind }) => kind === 'ready'))
  expect(told.find(({ kind }) => kind === 'ready')).toMatchObject({ queues: ['mail', 'rest'] })
  for (let no = 0; no < 3; no++) await mill.enqueueAndWait(quick)
  await expect(mill.enqueueAndWait(broken)).rejects.toMatchObject({ code: 'JOB_FAILED' })
  control.leave('drain', 1_000)
  expect(await running).toBe(true)
  const last = told.findLast((message) => message.kind === 'stats')
  expect(last?.stats).toMatchObject({ processed: 4, failed: 1, running: 0, ended: { mail: 3, rest: 1 } })
  // The snapshot before was made before any of these jobs: the sums of the supervisor must not miss them.
  const { jobs } = last!.stats.metrics as MetricsSnapshot
  expect(jobs.find(({ kind }) => kind === 'quick')?.counts.completed).toBe(3)
  expect(told.at(-1)).toEqual({ kind: 'done', drained: true })
})
