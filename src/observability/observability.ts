// Everything that watches one Millrace, put together: metrics, gauges of its stores, channels. What it is not asked for it
// does not do.
import type { Clock } from '../runtime/clock.ts'
import { systemClock } from '../runtime/clock.ts'
import { startLoopLag } from '../runtime/loop-lag.ts'
import type { CallWatch, Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { createGauges } from './gauges.ts'
import type { Gauges } from './gauges.ts'
import { createProbe } from './job-probe.ts'
import type { CheckedMetrics } from './metrics-options.ts'
import { prometheusText } from './prometheus.ts'
import { createMetrics } from './registry.ts'
import type { MetricsSnapshot } from './registry.ts'

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
}

export interface Observability {
  readonly probe: Probe
  readonly watchCalls?: (connection: string) => CallWatch
  readonly metrics: MillMetrics
  stop(): void
}

export function createObservability({ runtime, connections, metrics: asked }: ObservabilityParts): Observability {
  const { clock } = runtime
  const lag = asked === null ? undefined : loopLagOn(clock)
  const metrics = createMetrics({
    ...(asked !== null && { seriesMax: asked.seriesMax }),
    ...(lag !== undefined && { loopLag: () => lag.read() }),
  })
  const gauges = createGauges({ connections, clock })
  return {
    probe: createProbe({ clock, meter: asked === null ? undefined : metrics.jobs }),
    ...(asked !== null && { watchCalls: (connection: string) => metrics.calls.watch(connection) }),
    metrics: {
      snapshot: () => metrics.snapshot(),
      gauges,
      text: async () => prometheusText(metrics.snapshot(), await gauges()),
    },
    stop: () => lag?.stop(),
  }
}

/** On a virtual clock there is no loop that could be late. */
function loopLagOn(clock: Clock) {
  return clock === systemClock ? startLoopLag(clock) : undefined
}
