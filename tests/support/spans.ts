// An OpenTelemetry SDK for tests: everything stays in memory, and it is gone with the scope that holds it.
import { TraceFlags, context, propagation, trace } from '@opentelemetry/api'
import type { TextMapPropagator } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'

export interface Spans extends Disposable {
  /** Those that have ended, in the order of their start. */
  all(): readonly ReadableSpan[]
  /** The spans of one job. */
  of(id: string): readonly ReadableSpan[]
}

/** As the W3C says it, and a baggage that nobody may keep. */
const traceparent: TextMapPropagator<Record<string, string>> = {
  inject(active, carrier, setter) {
    const { traceId, spanId } = trace.getSpanContext(active) ?? { traceId: '', spanId: '' }
    setter.set(carrier, 'traceparent', `00-${traceId}-${spanId}-01`)
    setter.set(carrier, 'baggage', 'user=somebody')
  },
  extract(active, carrier, getter) {
    if (getter.get(carrier, 'baggage') !== undefined) throw new Error('the baggage was kept with the job')
    const [, traceId = '', spanId = ''] = String(getter.get(carrier, 'traceparent')).split('-')
    return trace.setSpanContext(active, { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true })
  },
  fields: () => ['traceparent', 'baggage'],
}

export function recordSpans(): Spans {
  const exporter = new InMemorySpanExporter()
  const manager = new AsyncLocalStorageContextManager().enable()
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  context.setGlobalContextManager(manager)
  propagation.setGlobalPropagator(traceparent)
  const all = (): readonly ReadableSpan[] =>
    exporter.getFinishedSpans().toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
  return {
    all,
    of: (id) => all().filter(({ attributes }) => attributes['messaging.message.id'] === id),
    [Symbol.dispose]() {
      trace.disable()
      context.disable()
      propagation.disable()
      manager.disable()
    },
  }
}
