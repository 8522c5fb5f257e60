// Spans through @opentelemetry/api, named as the semantic conventions for messaging say: `send` where a job is enqueued,
// `process` around its handler, `settle` until the store has answered. Without a registered SDK nothing is computed.
import {
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  context,
  propagation,
  trace,
} from '@opentelemetry/api'
import type { Attributes, Context, Link, Span, TextMapSetter } from '@opentelemetry/api'
import { carriedIn, withCarried } from '../core/carried.ts'
import type { Carried } from '../core/carried.ts'
import type { ClaimedJob, NewJob, WorkerId } from '../core/job.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { RunTrace, Tracing } from '../runtime/tracing.ts'

const SCOPE = 'millrace'
/** What a provider has that nobody registered. */
const NOBODY = new ProxyTracerProvider().getDelegate()

export function createTracing(join: 'link' | 'parent'): Tracing {
  return {
    isOn() {
      const provider = trace.getTracerProvider()
      return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== NOBODY
    },
    enqueue: (jobs, write) => traceEnqueue(jobs, write),
    run: (claimed, worker) => new JobRunTrace(claimed, worker, join),
  }
}

async function traceEnqueue<Reply>(
  jobs: readonly NewJob[],
  write: (jobs: readonly NewJob[]) => Promise<Reply>,
): Promise<Reply> {
  const [first] = jobs
  const span = trace.getTracer(SCOPE).startSpan(`send ${first?.queue ?? ''}`, {
    kind: SpanKind.PRODUCER,
    attributes: {
      ...attributesOf('send', first?.queue ?? ''),
      ...(jobs.length === 1
        ? { 'messaging.message.id': first!.id, 'millrace.job.name': first!.name }
        : { 'messaging.batch.message_count': jobs.length }),
    },
  })
  const own = trace.setSpan(context.active(), span)
  const carried = carriedBy(own)
  const carrying = jobs.map((job) => ({ ...job, meta: withCarried(job.meta, carried) }))
  try {
    return await context.with(own, () => write(carrying))
  } catch (error) {
    failed(span, error)
    throw error
  } finally {
    span.end()
  }
}

class JobRunTrace implements RunTrace {
  readonly #claimed: ClaimedJob
  readonly #span: Span
  readonly #context: Context
  #settle: Span | undefined

  constructor(claimed: ClaimedJob, worker: WorkerId, join: 'link' | 'parent') {
    this.#claimed = claimed
    const carried = carriedIn(claimed.meta)
    const sender = carried === null ? undefined : propagation.extract(ROOT_CONTEXT, carried)
    const sent = sender === undefined ? undefined : trace.getSpanContext(sender)
    const links: Link[] = sent !== undefined && join === 'link' ? [{ context: sent }] : []
    // Not the context of whatever started the worker: that would be the parent of every job.
    const parent = sender !== undefined && join === 'parent' ? sender : ROOT_CONTEXT
    const options = { kind: SpanKind.CONSUMER, links, attributes: runAttributes(claimed, worker) }
    this.#span = trace.getTracer(SCOPE).startSpan(`process ${claimed.queue}`, options, parent)
    this.#context = trace.setSpan(parent, this.#span)
  }

  within<Value>(call: () => Value): Value {
    return context.with(this.#context, call)
  }

  ended(outcome: Outcome): void {
    if (this.#settle !== undefined) return
    const error = errorOf(outcome)
    if (error !== undefined) failed(this.#span, error)
    this.#span.setAttribute('millrace.job.outcome', outcome.kind)
    this.#span.end()
    const { id, queue, name } = this.#claimed
    const attributes = { ...attributesOf('settle', queue), 'messaging.message.id': id, 'millrace.job.name': name }
    const options = { kind: SpanKind.CLIENT, attributes }
    this.#settle = trace.getTracer(SCOPE).startSpan(`settle ${queue}`, options, this.#context)
  }

  settled(transition: Transition, verdict: Verdict): void {
    const span = this.#settle
    if (span === undefined) return
    const settled = verdict === 'alternative' ? (transition.ifCancelRequested ?? transition) : transition
    span.setAttributes({ 'millrace.settle.edge': settled.edge, 'millrace.settle.verdict': verdict })
    if (verdict === 'stale' || verdict === 'missing' || verdict === 'conflict') {
      span.setAttribute('error.type', verdict)
      span.setStatus({ code: SpanStatusCode.ERROR, message: 'the job was no longer that of this run' })
    }
    span.end()
  }
}

function attributesOf(operation: 'send' | 'process' | 'settle', queue: string): Attributes {
  return {
    'messaging.system': 'millrace',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': queue,
  }
}

function runAttributes({ id, queue, name, attemptCount, priority, batch }: ClaimedJob, worker: WorkerId): Attributes {
  return {
    ...attributesOf('process', queue),
    'messaging.message.id': id,
    'messaging.client.id': worker,
    'millrace.job.name': name,
    'millrace.job.attempt': attemptCount + 1,
    'millrace.job.priority': priority,
    ...(batch !== null && { 'messaging.message.conversation_id': batch }),
  }
}

/** Undefined: it did not fail. */
function errorOf(outcome: Outcome): unknown {
  switch (outcome.kind) {
    case 'threw':
    case 'fail':
      return outcome.error ?? new Error('the handler failed without an error')
    case 'timed-out':
      return Object.assign(new Error(`the handler ran longer than ${outcome.timeoutMs} ms`), { code: 'JOB_TIMEOUT' })
    case 'retry-after':
      return Object.assign(new Error(outcome.reason), { code: 'RETRY_AFTER' })
    default:
      return undefined
  }
}

function failed(span: Span, error: unknown): void {
  const known = error instanceof Error ? error : new Error(String(error))
  const code = 'code' in known && typeof known.code === 'string' ? known.code : known.name
  span.setAttribute('error.type', code)
  span.recordException(known)
  span.setStatus({ code: SpanStatusCode.ERROR, message: known.message })
}

const SETTER: TextMapSetter<Record<string, string>> = {
  set(carrier, key, value) {
    // Baggage is whatever the caller has at hand: it must not end up in a database without being asked for.
    if (key !== 'baggage') carrier[key] = value
  },
}

function carriedBy(own: Context): Carried {
  const carrier: Record<string, string> = {}
  propagation.inject(own, carrier, SETTER)
  return carrier
}
