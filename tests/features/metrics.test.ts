// Metrics of one process: what is counted when, that labels are bounded, that a dead store cannot hang a scrape, and that
// Prometheus itself accepts the text.
import { channel } from 'node:diagnostics_channel'
import { describe, expect, test } from 'vitest'
import { cancel, createMillrace, defineJob, fixed, memory, mergeSnapshots, release, snooze } from '../../src/index.ts'
import type { MetricsSnapshot, RunContext } from '../../src/index.ts'
import { totalOf } from '../../src/core/buckets.ts'
import { startedRuns } from '../../src/core/job-series.ts'
import { deepestQueues } from '../../src/observability/gauge-samples.ts'
import { createMetrics } from '../../src/observability/registry.ts'
import { prometheusText } from '../../src/observability/prometheus.ts'
import { checkMetricsText } from '../support/promtool.ts'
import { setup } from './support.ts'

const behave = defineJob({
  name: 'behave',
  queue: 'mail',
  attempts: 2,
  retry: fixed({ attempts: 2, delay: '1s' }),
  run({ input, attempt }: RunContext<string>) {
    if (input === 'snooze' && attempt === 1) return snooze('10m')
    if (input === 'release') return release('not now')
    if (input === 'cancel') return cancel('no longer needed')
    if (input === 'flaky' && attempt === 1) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' })
    if (input === 'broken') throw new Error('broken')
    return input
  },
})
const other = defineJob({ name: 'other-kind', queue: 'mail', run: () => 'done' })

function behaviour(snapshot: MetricsSnapshot, kind = 'behave') {
  const series = snapshot.jobs.find((one) => one.kind === kind)
  if (series === undefined) throw new Error(`nothing was counted of ${kind}`)
  return series
}

describe('memory', () => {
  test('O1 every end of a run is counted once, by what the store has said', async () => {
    const { clock, mill } = await setup([behave, other])
    await mill.enqueueMany([
      [behave, 'fine'],
      [behave, 'flaky'],
      [behave, 'broken', { priority: 'high' }],
      [behave, 'cancel', { priority: 'low' }],
      [behave, 'snooze'],
      [behave, 'once', { unique: 'me' }],
      [other],
    ])
    await mill.enqueue(behave, 'once', { unique: 'me' })
    await clock.during(mill.work())
    await clock.advance(10_000)
    const series = behaviour(mill.metrics.snapshot())
    expect(series).toMatchObject({
      queue: 'mail',
      counts: {
        enqueued: 6,
        duplicates: 1,
        completed: 3,
        retried: 2,
        dead: 1,
        cancelled: 1,
        snoozed: 1,
        startedHigh: 2,
        startedLow: 1,
      },
      failed: { network: 1, unknown: 2 },
    })
    expect(series.counts.released).toBeUndefined()
    expect(startedRuns(series)).toBe(8)
    expect(totalOf(series.times.wait!)).toBe(8)
    expect(totalOf(series.times.run!)).toBe(8)
    // Those that are over: three completed, one cancelled, one dead.
    expect(totalOf(series.times.total!)).toBe(5)
    expect(behaviour(mill.metrics.snapshot(), 'other-kind').counts).toMatchObject({ enqueued: 1, completed: 1 })
    await clock.during(mill.stop())
  })

  test('O1 a result that came too late and a run that lost its worker are counted where they are found', async () => {
    const { clock, mill, backend } = await setup([behave])
    await mill.enqueue(behave, 'fine')
    const worker = mill.consumer({ queues: ['mail'], visibility: '1s' })
    const [job] = await worker.claim()
    await clock.during(mill.work({ queues: ['mail'] }))
    await clock.advance(20_000)
    expect(await worker.ack(job!)).toBe('stale')
    const { counts, failed } = behaviour(mill.metrics.snapshot())
    expect(counts).toMatchObject({ stale: 1, expired: 1, completed: 1, retried: 1 })
    expect(failed).toEqual({ timeout: 1 })
    expect((await backend.query.get([job!.id]))[0]?.status).toBe('completed')
    await clock.during(mill.stop())
  })

  test('O1 a job that is cancelled while it waits is counted once, and a cancel does not wait for that', async () => {
    let isSlow = true
    const { clock, mill } = await setup([other], {
      around: (what, call) => (isSlow && what === 'query.get' ? new Promise(() => undefined) : call()),
    })
    const handles = await mill.enqueueMany([[other], [other], [other]])
    expect(await handles[0].cancel()).toBe('cancelled')
    expect(behaviour(mill.metrics.snapshot(), 'other-kind').counts.cancelled).toBeUndefined()
    isSlow = false
    expect(await mill.jobs.cancel([handles[1].id, handles[2].id])).toEqual(['cancelled', 'cancelled'])
    expect(await mill.jobs.cancel(handles[1].id)).toBe('cancelled')
    await clock.settle()
    expect(behaviour(mill.metrics.snapshot(), 'other-kind').counts.cancelled).toBe(2)
  })

  test('O1 ticks of a schedule are enqueued by the process that fires them', async () => {
    const { clock, mill } = await setup([other])
    await mill.schedules.upsert('each-minute', { job: other, every: '1m' })
    await clock.during(mill.work())
    await clock.advance(3.5 * 60_000)
    const { length } = (await mill.jobs.list()).items
    expect(length).toBeGreaterThanOrEqual(3)
    expect(behaviour(mill.metrics.snapshot(), 'other-kind').counts).toMatchObject({
      enqueued: length,
      completed: length,
    })
    await clock.during(mill.stop())
  })

  test('O1 store calls are timed once each, and their errors counted by code', async () => {
    let isDown = false
    const { clock, mill, calls } = await setup([other], {
      metrics: { history: false },
      around: (what, call) => (isDown && what === 'query.counts' ? new Promise(() => undefined) : call()),
    })
    await mill.enqueue(other)
    isDown = true
    await expect(clock.during(mill.jobs.counts())).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
    const found = mill.metrics.snapshot().calls
    const of = (name: string) => found.find(({ call }) => call === name)
    expect(totalOf(of('jobs.insert')!.times)).toBe(calls.get('jobs.insert'))
    expect(of('query.counts')).toMatchObject({
      connection: 'default',
      errors: { STORE_TIMEOUT: calls.get('query.counts') },
    })
    expect(of('query.counts')!.times.sumSeconds).toBeGreaterThanOrEqual(30)
  })

  test('O1 a scrape of a store that does not answer ends in time, says so, and asks it once', async () => {
    let isDown = true
    const { clock, mill, calls } = await setup([other], {
      around: (what, call) => (isDown && what.startsWith('query') ? new Promise(() => undefined) : call()),
    })
    const startMs = clock.monoMs()
    const texts = await clock.during(Promise.all([mill.metrics.text(), mill.metrics.text()]))
    expect(clock.monoMs() - startMs).toBeLessThanOrEqual(2_000)
    expect(texts[0]).toContain('millrace_store_up{connection="default"} 0')
    expect(texts[0]).not.toContain('millrace_queue_jobs')
    await clock.during(mill.metrics.text())
    expect(calls.get('query.counts')).toBe(1)
    isDown = false
    const up = await setup([other])
    await up.mill.enqueue(other)
    expect(await up.mill.metrics.text()).toContain(
      'millrace_queue_jobs{connection="default",queue="mail",status="queued"} 1',
    )
  })

  test('O1 a question that is never answered is given up, and the store is up again when it answers the next one', async () => {
    let isDown = true
    const { clock, mill } = await setup([other], {
      around: (what, call) => (isDown && what === 'query.counts' ? new Promise(() => undefined) : call()),
    })
    expect((await clock.during(mill.metrics.gauges()))[0]?.isUp).toBe(false)
    isDown = false
    await clock.advance(40_000)
    expect((await clock.during(mill.metrics.gauges()))[0]?.isUp).toBe(true)
  })

  test('O1 ready jobs are shown by lane; lanes that cannot be counted in time cost a scrape nothing else', async () => {
    let isSlow = false
    const { clock, mill } = await setup([other, behave], {
      around: (what, call) => (isSlow && what === 'query.lanes' ? new Promise(() => undefined) : call()),
    })
    await mill.enqueueMany([
      [other, undefined, { priority: 'high' }],
      [other, undefined, { priority: 'high' }],
      [other, undefined, { priority: 'low' }],
    ])
    const lanesOf = (text: string) => text.split('\n').filter((line) => line.startsWith('millrace_queue_ready_jobs{'))
    const labels = 'millrace_queue_ready_jobs{connection="default",queue="mail"'
    expect(lanesOf(await mill.metrics.text())).toEqual([
      `${labels},lane="high"} 2`,
      `${labels},lane="normal"} 0`,
      `${labels},lane="low"} 1`,
    ])
    isSlow = true
    await clock.advance(10_000)
    const slow = await clock.during(mill.metrics.text())
    expect(lanesOf(slow)).toEqual([])
    expect(slow).toContain('status="queued"} 3')
  })

  test('O1 queues beyond the bound are one, also when a queue has its name', () => {
    const counts = {
      scheduled: 0,
      queued: 1,
      blocked: 0,
      dispatched: 0,
      running: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
    }
    const queues = ['other', 'a', 'b', 'c'].map((queue, no) => ({
      queue,
      isPaused: false,
      counts: { ...counts, queued: no === 0 ? 9 : 1 },
      oldestReadyMs: no,
      lanes: null,
      dispatch: null,
    }))
    const shown = deepestQueues(queues, 3)
    expect(shown.map(({ queue, counts: { queued } }) => [queue, queued])).toEqual([
      ['a', 1],
      ['b', 1],
      ['other', 10],
    ])
  })

  test('O1 gauges say how deep, how old, how many work and what failed, and are asked for at most every five seconds', async () => {
    const { clock, mill, calls } = await setup([behave, other])
    await mill.enqueueMany([[other], [behave, 'broken']])
    await clock.advance(90_000)
    const [before] = await mill.metrics.gauges()
    expect(before).toMatchObject({
      isUp: true,
      queues: [{ queue: 'mail', oldestReadyMs: 90_000, counts: { queued: 2 } }],
    })
    await clock.during(mill.work({ concurrency: 7 }))
    await mill.queues.pause('mail')
    await clock.advance(4_000)
    expect(await mill.metrics.gauges()).toEqual([before])
    expect(calls.get('query.counts')).toBe(1)
    await mill.queues.resume('mail')
    await clock.advance(10_000)
    const [after] = await mill.metrics.gauges()
    expect(after).toMatchObject({ workers: { alive: 1, silent: 0, slots: 7, running: 0 } })
    expect(after?.queues[0]).toMatchObject({ counts: { failed: 1, completed: 1 }, isPaused: false, oldestReadyMs: 0 })
    await clock.during(mill.stop())
  })

  test('O1 labels are bounded: more pairs of queue and kind than allowed are counted as other', () => {
    const metrics = createMetrics({ seriesMax: 3 })
    for (let index = 0; index < 100; index++) metrics.jobs.enqueued(`queue-${index % 20}`, 'send', false)
    const { jobs } = metrics.snapshot()
    expect(jobs.map(({ queue }) => queue)).toEqual(['queue-0', 'queue-1', 'queue-2', 'other'])
    expect(jobs.at(-1)?.counts.enqueued).toBe(85)
  })

  test('O1 snapshots of several processes add up, through JSON', async () => {
    const [one, two] = await Promise.all([setup([other]), setup([other])])
    for (const { clock, mill } of [one, two]) {
      await mill.enqueueMany([[other], [other]])
      await clock.during(mill.work())
      await clock.advance(1_000)
    }
    const snapshots = [one, two].map(
      ({ mill }) => JSON.parse(JSON.stringify(mill.metrics.snapshot())) as MetricsSnapshot,
    )
    const merged = mergeSnapshots(snapshots)
    expect(behaviour(merged, 'other-kind').counts).toMatchObject({ enqueued: 4, completed: 4 })
    const insert = merged.calls.find(({ call }) => call === 'jobs.insert')
    expect(totalOf(insert!.times)).toBe(2)
    await Promise.all([one, two].map(({ clock, mill }) => clock.during(mill.stop())))
  })

  test('O1 promtool accepts the text, with names that have to be escaped', async () => {
    await using mill = await createMillrace({ jobs: [behave, other], backend: memory() })
    await mill.enqueueMany([[other], [behave, 'broken'], [behave, 'flaky'], [behave, 'fine']])
    const worker = await mill.work()
    await expect.poll(() => behaviour(mill.metrics.snapshot()).counts.completed ?? 0).toBeGreaterThan(0)
    const text = await mill.metrics.text()
    expect(checkMetricsText(text)).toEqual({ status: 0, says: '' })
    expect(text).toContain('# TYPE millrace_job_run_seconds histogram')
    expect(text).toMatch(/^millrace_event_loop_lag_seconds\{stat="max"\} \d/m)
    const odd = createMetrics()
    odd.jobs.enqueued('a "quoted" \\ queue\n', 'send', false)
    const escaped = prometheusText(odd.snapshot())
    expect(escaped).toContain('queue="a \\"quoted\\" \\\\ queue\\n"')
    expect(checkMetricsText(escaped)).toEqual({ status: 0, says: '' })
    expect(checkMetricsText('this is no metric at all\n').status).not.toBe(0)
    await worker.stop()
  })

  test('O1 with metrics off nothing is counted, and the gauges of the stores are still there', async () => {
    const { clock, mill } = await setup([other], { metrics: false })
    await mill.enqueue(other)
    await clock.during(mill.work())
    await clock.advance(1_000)
    expect(mill.metrics.snapshot()).toEqual({ jobs: [], calls: [], loopLag: null })
    expect(await mill.metrics.text()).toContain('status="completed"} 1')
    await clock.during(mill.stop())
  })

  test('O1 wrong options are refused by name', async () => {
    for (const metrics of [{ serie: 3 }, { series: 0 }, { history: 'yes' }]) {
      const created = createMillrace({ jobs: [other], backend: memory(), metrics: metrics as object })
      await expect(created).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    }
    for (const telemetry of [{ traces: true }, { tracing: { link: 'both' } }, { metrics: 1 }]) {
      const created = createMillrace({ jobs: [other], backend: memory(), telemetry: telemetry as object })
      await expect(created).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    }
  })

  test('O1 diagnostics channels tell of jobs while somebody listens, also with metrics off', async () => {
    const heard: [string, unknown][] = []
    const listen = (message: unknown, name: string | symbol): void => void heard.push([String(name), message])
    const names = ['millrace:enqueue', 'millrace:start', 'millrace:end', 'millrace:stale', 'millrace:rescue']
    const { clock, mill } = await setup([behave], { metrics: false })
    await mill.enqueue(behave, 'fine')
    for (const name of names) channel(name).subscribe(listen)
    try {
      const { id } = await mill.enqueue(behave, 'broken')
      await clock.during(mill.work())
      await clock.advance(5_000)
      const own = heard.filter(([, message]) => (message as { id: string }).id === id)
      expect(own.map(([name]) => name)).toEqual([
        'millrace:enqueue',
        'millrace:start',
        'millrace:end',
        'millrace:start',
        'millrace:end',
      ])
      expect(own[1]?.[1]).toMatchObject({ name: 'behave', queue: 'mail', attempt: 1, lane: 'normal' })
      expect(own[4]?.[1]).toMatchObject({ edge: 'fail', attempt: 2, error: { message: 'broken' } })
    } finally {
      for (const name of names) channel(name).unsubscribe(listen)
    }
    const before = heard.length
    await mill.enqueue(behave, 'fine')
    expect(heard.length).toBe(before)
    await clock.during(mill.stop())
  })
})
