// Everything that watches one Millrace, put together: metrics and their history, gauges of its stores, channels, traces.
// What it is not asked for it does not do.
import type { Connections } from '../client/connections.ts'
import type { Clock } from '../runtime/clock.ts'
import { systemClock } from '../runtime/clock.ts'
import { startLoopLag } from '../runtime/loop-lag.ts'
import type { CallWatch, Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Service } from '../runtime/service.ts'
import type { Tracing } from '../runtime/tracing.ts'
import type { NoteStore } from '../store/note-store.ts'
import type { Backend } from '../store/ports.ts'
import { createDepths } from './depths.ts'
import { createFolder } from './folder.ts'
import { createGauges } from './gauges.ts'
import type { Gauges } from './gauges.ts'
import { createProbe } from './job-probe.ts'
import { createMeters } from './meters.ts'
import type { CheckedMetrics, CheckedTelemetry } from './metrics-options.ts'
import { prometheusText } from './prometheus.ts'
import { createRecorder } from './recorder.ts'
import { createMetrics } from './registry.ts'
import type { Metrics, MetricsSnapshot } from './registry.ts'
import { createTracing } from './tracing.ts'

/** `mill.metrics`. With `metrics: false` it has nothing to show but the gauges of the stores. */
export interface MillMetrics {
  /** What this process has counted, as plain JSON. */
  snapshot(): MetricsSnapshot
  /** What the stores say: bounded, and at most a few seconds old. */
  gauges(): Promise<Gauges>
  /** Both in the text format of Prometheus. */
  text(): Promise<string>
}

export interface ObservabilityParts {
  readonly runtime: Runtime
  readonly connections: Readonly<Record<string, Backend>>
  readonly metrics: CheckedMetrics | null
  readonly telemetry: CheckedTelemetry
}

export interface Observability {
  readonly probe: Probe
  readonly watchCalls?: (connection: string) => CallWatch
  readonly metrics: MillMetrics
  readonly tracing: Tracing | undefined
  /** Over the connections of the client, whose calls are bounded. */
  recorder(connections: Connections): Service
  /** What keeps the depths of one store and folds its history while this process leads; nothing when none is kept. */
  folders(backend: Backend, isLeading: () => boolean): readonly Service[]
  stop(): void
}

export function createObservability(parts: ObservabilityParts): Observability {
  const { runtime, connections, metrics: asked, telemetry } = parts
  const { clock } = runtime
  const lag = asked === null ? undefined : loopLagOn(clock)
  const metrics = createMetrics({
    ...(asked !== null && { seriesMax: asked.seriesMax }),
    ...(lag !== undefined && { loopLag: () => lag.read() }),
  })
  const gauges = createGauges({ connections, clock })
  const meters = asked !== null && telemetry.metrics ? createMeters(metrics, gauges) : undefined
  return {
    probe: createProbe({ clock, meter: asked === null ? undefined : metrics.jobs, ended: meters?.ended }),
    ...(asked !== null && { watchCalls: (connection: string) => metrics.calls.watch(connection) }),
    tracing: telemetry.tracing === null ? undefined : createTracing(telemetry.tracing),
    recorder: (own) => (asked?.keepsHistory ? recorderOf(runtime, metrics, own) : NOTHING),
    folders: (backend, isLeading) => (asked?.keepsHistory ? foldersOf(runtime, backend, isLeading) : []),
    metrics: {
      snapshot: () => metrics.snapshot(),
      gauges,
      text: async () => prometheusText(metrics.snapshot(), await gauges()),
    },
    stop() {
      lag?.stop()
      meters?.stop()
    },
  }
}

const NOTHING: Service = { start: () => Promise.resolve(), stop: () => Promise.resolve() }

function foldersOf(runtime: Runtime, backend: Backend, isLeading: () => boolean): readonly Service[] {
  const { notes } = backend
  return [createFolder({ runtime, notes, isLeading }), createDepths({ runtime, backend, isLeading })]
}

function recorderOf(runtime: Runtime, metrics: Metrics, connections: Connections): Service {
  const notesOf = (queue: string): NoteStore => connections.backend(connections.ofQueue(queue)).notes
  return createRecorder({ runtime, series: () => metrics.jobs.series(), notesOf })
}

/** On a virtual clock there is no loop that could be late. */
function loopLagOn(clock: Clock) {
  return clock === systemClock ? startLoopLag(clock) : undefined
}
