// The options `metrics` and `telemetry` of createMillrace, checked.
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, invalidOption } from '../core/names.ts'

export interface MetricsOptions {
  /** Pairs of queue and kind that are counted apart; more are `other`. Default 300. */
  readonly series?: number
  /** Sums per minute and hour in the store, for `history()`. Default true. */
  readonly history?: boolean
}

export interface TelemetryOptions {
  /**
   * Spans through the OpenTelemetry SDK that the process has registered; without one nothing is computed. `link`: the run
   * of a job has a trace of its own that points to the one that enqueued it. `parent`: they are one trace. Default link.
   */
  readonly tracing?: boolean | { readonly link: 'link' | 'parent' }
  /** Instruments in the meter provider that was registered before; without one there are none. Default true. */
  readonly metrics?: boolean
}

/** Null: off. */
export interface CheckedMetrics {
  readonly seriesMax: number
  readonly keepsHistory: boolean
}

export interface CheckedTelemetry {
  readonly tracing: 'link' | 'parent' | null
  readonly metrics: boolean
}

export function checkMetrics(metrics: boolean | MetricsOptions = true): CheckedMetrics | null {
  if (metrics === false) return null
  if (metrics === true) return { seriesMax: DEFAULTS.metricSeries, keepsHistory: true }
  checkKnownOptions(metrics, ['series', 'history'], 'metrics')
  const { series = DEFAULTS.metricSeries, history = true } = metrics
  if (typeof history !== 'boolean') throw invalidOption('metrics.history', history, 'true or false')
  return { seriesMax: checkInteger(series, 'metrics.series', 1, LIMITS.metricSeriesMax), keepsHistory: history }
}

export function checkTelemetry(telemetry: TelemetryOptions = {}): CheckedTelemetry {
  checkKnownOptions(telemetry, ['tracing', 'metrics'], 'telemetry')
  const { tracing = true, metrics = true } = telemetry
  if (typeof metrics !== 'boolean') throw invalidOption('telemetry.metrics', metrics, 'true or false')
  if (typeof tracing === 'boolean') return { tracing: tracing ? 'link' : null, metrics }
  checkKnownOptions(tracing, ['link'], 'telemetry.tracing')
  if (tracing.link !== 'link' && tracing.link !== 'parent') {
    throw invalidOption('telemetry.tracing.link', tracing.link, "'link' or 'parent'")
  }
  return { tracing: tracing.link, metrics }
}
