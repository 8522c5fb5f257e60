// Instruments of OpenTelemetry: the counts of a process, the depth of its queues and the time of its runs, as collected by a
// reader in memory.
import { metrics as api } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { describe, expect, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'

const work = defineJob({
  name: 'work',
  queue: 'mail',
  attempts: 1,
  run({ input }: RunContext<string>) {
    if (input === 'broken') throw new Error('broken')
  },
})

describe('memory', () => {
  test('O1 a registered meter provider collects counters, depths and the time of runs, named by the conventions', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const provider = new MeterProvider({
      readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })],
    })
    api.setGlobalMeterProvider(provider)
    try {
      await using mill = await createMillrace({ jobs: [work], backend: memory() })
      await using silent = await createMillrace({ jobs: [work], backend: memory(), telemetry: { metrics: false } })
      await silent.enqueue(work, 'fine')
      await mill.enqueueMany([
        [work, 'fine'],
        [work, 'broken'],
      ])
      await mill.work()
      await expect.poll(() => mill.metrics.snapshot().jobs[0]?.counts.dead).toBe(1)
      await provider.forceFlush()
      const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      const pointsOf = (name: string) => found.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
      const labels = {
        'messaging.system': 'millrace',
        'messaging.destination.name': 'mail',
        'millrace.job.name': 'work',
      }
      expect(pointsOf('millrace.jobs.enqueued')).toMatchObject([{ value: 2, attributes: labels }])
      expect(pointsOf('millrace.jobs.dead')).toMatchObject([{ value: 1, attributes: labels }])
      const depths = pointsOf('millrace.queue.jobs').filter(
        ({ attributes }) => attributes['millrace.job.status'] === 'failed',
      )
      expect(depths).toMatchObject([{ value: 1 }])
      const runs = pointsOf('messaging.process.duration')
      expect(runs.map(({ attributes }) => attributes['error.type'])).toEqual(
        expect.arrayContaining([undefined, 'unknown']),
      )
      expect(runs.map(({ value }) => (value as { count: number }).count)).toEqual([1, 1])
    } finally {
      api.disable()
      await provider.shutdown()
    }
  })
})
