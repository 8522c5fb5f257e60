// What the hybrid says of its two halves: tokens, the relay, the memory of Redis, and a Redis that is away.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../../src/index.ts'
import { checkMetricsText } from '../../support/promtool.ts'
import { useHybrid } from './support.ts'

const noop = defineJob({ name: 'noop', run: () => undefined })
const place = useHybrid()

describe('hybrid', () => {
  test('O1 relay lag, the fill of the window, tokens and the memory of Redis are gauges that promtool accepts', async () => {
    await using at = await place()
    const [one, two] = [await at.process([noop]), await at.process([noop])]
    await two.work()
    await one.enqueue(noop)
    await expect.poll(async () => (await one.jobs.counts('default'))[0]?.counts.completed).toBe(1)
    const [gauges] = await one.metrics.gauges()
    expect(gauges?.queues[0]?.dispatch).toMatchObject({ mode: 'token', backlog: 0, relayLagMs: 0, windowFill: 0 })
    const redis = gauges?.servers.find(({ kind }) => kind === 'redis')
    expect(redis?.memory?.usedBytes).toBeGreaterThan(100_000)
    const text = await one.metrics.text()
    expect(checkMetricsText(text)).toEqual({ status: 0, says: '' })
    const labels = 'connection="default",queue="default"'
    for (const name of ['relay_lag_seconds', 'relay_backlog_jobs', 'window_fill_ratio']) {
      expect(text).toContain(`millrace_${name}{${labels}} 0\n`)
    }
    expect(text).toContain(`millrace_window_tokens{${labels},state="waiting"} 0\n`)
  })
})
