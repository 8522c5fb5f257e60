// What a supervisor adds up of its processes for those who look at its metrics.
import { expect, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import type { MetricsSnapshot } from '../../src/observability/registry.ts'
import type { SupervisorListener } from '../../src/supervisor/events.ts'
import { createMetrics } from '../../src/observability/registry.ts'
import { metricsTextOf } from '../../src/supervisor/seeing.ts'

const job = defineJob({ name: 'mail', run: () => undefined })

/** What a process has counted that has completed so many jobs. */
async function snapshotOf(count: number): Promise<MetricsSnapshot> {
  await using mill = await createMillrace({ jobs: [job], backend: memory() })
  await mill.work()
  for (let no = 0; no < count; no += 1) await mill.enqueueAndWait(job)
  return mill.metrics.snapshot()
}

test('O1 metrics of a supervisor are the sums of its processes, and do not fall when one of them ends', async () => {
  await using mill = await createMillrace({ jobs: [job], backend: memory() })
  const [two, three] = [await snapshotOf(2), await snapshotOf(3)]
  let living: MetricsSnapshot[] = [two, three]
  let exited: SupervisorListener<'exited'> = () => undefined
  const text = metricsTextOf(mill, {
    metrics: () => living.map((metrics, no) => ({ child: String(no), pool: 'default', metrics })),
    on: (name, listener) => {
      if (name === 'exited') exited = listener as typeof exited
      return () => undefined
    },
  })
  const completed = async (): Promise<number> =>
    Number(/^millrace_jobs_completed_total\{[^}]*kind="mail"[^}]*\} (\d+)$/m.exec(await text())?.[1])
  expect(await completed()).toBe(5)
  living = [two]
  exited({ metrics: three } as Parameters<typeof exited>[0])
  expect(await completed()).toBe(5)
  // Of another release, or of a process that never said anything.
  exited({ metrics: undefined } as Parameters<typeof exited>[0])
  exited({ metrics: { jobs: 'many' } } as unknown as Parameters<typeof exited>[0])
  expect(await completed()).toBe(5)
})

test('O1 of more kinds than have a place the first keep theirs: no counter falls when others become more active', async () => {
  await using mill = await createMillrace({ jobs: [job], backend: memory(), metrics: { history: false } })
  const child = createMetrics()
  const count = (kind: string, times: number): void => {
    for (let no = 0; no < times; no += 1) child.jobs.enqueued('q', kind, false)
  }
  const living = { metrics: () => [{ child: '1', pool: 'p', metrics: child.snapshot() }], on: () => () => undefined }
  const text = metricsTextOf(mill, living, 2)
  const enqueued = async (kind: string): Promise<number> => {
    const queue = kind === 'other' ? 'other' : 'q'
    const line = new RegExp(`^millrace_jobs_enqueued_total\\{queue="${queue}",kind="${kind}"\\} (\\d+)$`, 'm')
    return Number(line.exec(await text())?.[1] ?? 0)
  }
  for (const kind of ['a', 'b', 'c']) count(kind, 5)
  expect([await enqueued('a'), await enqueued('b'), await enqueued('c'), await enqueued('other')]).toEqual([5, 5, 0, 5])
  count('c', 100)
  expect([await enqueued('a'), await enqueued('b'), await enqueued('c'), await enqueued('other')]).toEqual([
    5, 5, 0, 105,
  ])
})
