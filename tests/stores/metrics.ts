// What is seen of jobs in a store that lives in a server: a trace from enqueue to settlement, over processes; gauges; history.
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { expect, test } from 'vitest'
import { defineJob, fixed } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { checkMetricsText } from '../support/promtool.ts'
import { recordSpans } from '../support/spans.ts'
import type { OpenPlace } from './place.ts'

const child = defineJob({ name: 'child', queue: 'mail', run: () => 'sent' })
const send = defineJob({
  name: 'send',
  queue: 'mail',
  attempts: 2,
  retry: fixed({ attempts: 2, delay: '10ms' }),
  async run({ input, attempt, job, enqueue }: RunContext<string>) {
    if (input === 'flaky' && attempt === 1) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' })
    if (input === 'parent') await enqueue(child)
    return { meta: job.meta, trace: trace.getActiveSpan()?.spanContext().traceId ?? null }
  },
})

export function seeing(place: OpenPlace): void {
  test('O1 a trace leads from enqueue over the run to its settlement, linked through the job', async () => {
    using spans = recordSpans()
    await using at = await place()
    const [producer, consumer] = [await at.process([send, child]), await at.process([send, child])]
    await consumer.work()
    const handle = await producer.enqueue(send, 'flaky', { meta: { tenant: 7 } })
    const result = await handle.result()
    await expect.poll(() => spans.of(handle.id).length).toBe(5)
    const [sent, ...runs] = spans.of(handle.id)
    expect(sent).toMatchObject({ name: 'send mail', kind: SpanKind.PRODUCER })
    expect(sent?.attributes).toEqual({
      'messaging.system': 'millrace',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'mail',
      'messaging.message.id': handle.id,
      'millrace.job.name': 'send',
    })
    const [failed, failedSettle, process, settle] = runs
    expect(runs.map(({ name, kind }) => [name, kind])).toEqual([
      ['process mail', SpanKind.CONSUMER],
      ['settle mail', SpanKind.CLIENT],
      ['process mail', SpanKind.CONSUMER],
      ['settle mail', SpanKind.CLIENT],
    ])
    // Both attempts point to the one enqueue, and each is a trace of its own.
    for (const run of [failed, process]) expect(run?.links.map((link) => link.context)).toMatchObject([ids(sent)])
    expect(new Set([sent, failed, process].map((span) => span?.spanContext().traceId)).size).toBe(3)
    expect(failed).toMatchObject({ status: { code: SpanStatusCode.ERROR, message: 'gone' } })
    expect(failed?.attributes).toMatchObject({ 'error.type': 'ECONNRESET', 'millrace.job.attempt': 1 })
    expect(failed?.events.map(({ name }) => name)).toEqual(['exception'])
    expect(failedSettle?.attributes).toMatchObject({
      'millrace.settle.edge': 'retry',
      'millrace.settle.verdict': 'applied',
    })
    expect(process?.attributes).toMatchObject({ 'millrace.job.attempt': 2, 'millrace.job.outcome': 'done' })
    expect(settle?.attributes).toMatchObject({ 'millrace.settle.edge': 'complete' })
    expect(settle?.parentSpanContext).toMatchObject(ids(process))
    // The handler ran inside its span, and saw the metadata of its user alone.
    expect(result).toEqual({ meta: { tenant: 7 }, trace: process?.spanContext().traceId })
    expect(await producer.jobs.get(handle)).toMatchObject({ meta: { tenant: 7 } })
  })

  test('O1 by option it is one trace, and what a handler enqueues belongs to it', async () => {
    using spans = recordSpans()
    await using at = await place()
    const mill = await at.process([send, child], { telemetry: { tracing: { link: 'parent' } } })
    await mill.work()
    const [first, second] = await mill.enqueueMany([
      [send, 'parent'],
      [send, 'fine'],
    ])
    expect(await second.result()).toMatchObject({ meta: null })
    await first.result()
    // One write for both, a run and a settlement of each, and the child.
    await expect.poll(() => spans.all().length).toBe(1 + 4 + 3)
    const [sent] = spans.all()
    expect(sent).toMatchObject({ name: 'send mail' })
    expect(sent?.attributes).toMatchObject({ 'messaging.batch.message_count': 2 })
    expect(new Set(spans.all().map((span) => span.spanContext().traceId)).size).toBe(1)
    const [run] = spans.of(first.id)
    expect(run).toMatchObject({ name: 'process mail', parentSpanContext: ids(sent), links: [] })
    const inner = spans.all().find((span) => span.name === 'send mail' && span !== sent)
    expect(inner?.parentSpanContext).toMatchObject(ids(run))
  })

  test('O1 a consumer without our loop has the same spans: from its claim to its answer, linked to the enqueue', async () => {
    using spans = recordSpans()
    await using at = await place()
    const mill = await at.process([send, child])
    const handles = await mill.enqueueMany([[child], [child], [child]])
    await using consumer = mill.consumer({ queues: ['mail'] })
    const jobs = await consumer.claim(3)
    const job = (index: number) => jobs.find(({ id }) => id === handles[index]?.id)!
    expect(await consumer.ack(job(0), 'done')).toBe('done')
    expect(await consumer.nack(job(1), { error: new Error('no'), delay: '1h' })).toBe('done')
    const [process, settle] = spans.of(handles[0].id)
    expect(process).toMatchObject({ name: 'process mail', kind: SpanKind.CONSUMER })
    expect(process?.links.map((link) => link.context)).toMatchObject([ids(spans.all()[0])])
    expect(settle).toMatchObject({ name: 'settle mail', parentSpanContext: ids(process) })
    expect(settle?.attributes).toMatchObject({
      'millrace.settle.edge': 'complete',
      'millrace.settle.verdict': 'applied',
    })
    const [failed, retried] = spans.of(handles[1].id)
    expect(failed).toMatchObject({ status: { code: SpanStatusCode.ERROR, message: 'no' } })
    expect(retried?.attributes).toMatchObject({ 'millrace.settle.edge': 'retry' })
    // What is given back has ended too; a second answer is not a second span.
    expect(await consumer.ack(job(0))).toBe('done')
    await consumer.stop()
    expect(spans.of(handles[2].id)).toMatchObject([{ attributes: { 'millrace.job.outcome': 'release' } }])
    expect(spans.of(handles[0].id)).toHaveLength(2)
  })

  test('O1 gauges come from the store, and history is there for everybody when a worker has ended', async () => {
    await using at = await place()
    const [one, two] = [await at.process([send, child]), await at.process([send, child])]
    await one.enqueueMany([[send, 'fine'], [send, 'flaky'], [child]])
    const worker = await two.work({ concurrency: 3 })
    await expect.poll(async () => (await one.jobs.counts('mail'))[0]?.counts.completed).toBe(3)
    const [gauges] = await one.metrics.gauges()
    expect(gauges).toMatchObject({ isUp: true, workers: { alive: 1, slots: 3 } })
    expect(gauges?.queues).toMatchObject([{ queue: 'mail', counts: { completed: 3 }, oldestReadyMs: 0 }])
    expect(checkMetricsText(await two.metrics.text())).toEqual({ status: 0, says: '' })
    await worker.stop()
    await two.stop()
    const points = await one.history({ queue: 'mail' })
    const series = points.flatMap((point) => point.series)
    expect(series.reduce((sum, { completed }) => sum + completed, 0)).toBe(3)
    expect(series.reduce((sum, { retried }) => sum + retried, 0)).toBe(1)
  })
}

function ids(span: ReturnType<ReturnType<typeof recordSpans>['all']>[number] | undefined) {
  const { traceId, spanId } = span?.spanContext() ?? { traceId: '', spanId: '' }
  return { traceId, spanId }
}
