// Which charts there are: one per scenario for what it is about, and one more for the slowest of its latencies.
import { keeperOf } from '../backends.ts'
import { OURS, SCENARIOS } from '../catalogue.ts'
import type { Report, Row } from '../report.ts'
import { METRICS } from '../scenario.ts'
import type { Metric } from '../scenario.ts'
import { chartOf } from './chart.ts'
import { metricsIn } from './findings.ts'
import { METRIC_LABELS, displayName, nameOf, shown } from './names.ts'

export interface ChartFile {
  readonly scenario: string
  /** In docs/charts. */
  readonly name: string
  readonly title: string
  readonly svg: string
}

export function chartsOf({ results }: Report): readonly ChartFile[] {
  return SCENARIOS.flatMap(({ name, says }) => {
    const rows = results.filter(({ scenario }) => scenario === name)
    const [main] = metricsIn(rows)
    const metrics = metricsIn(rows).filter((metric) => metric === main || metric === 'p99_ms')
    return metrics.flatMap((metric) => {
      // What lives in memory would dwarf everybody, and promises nothing.
      const bars = rows.filter((row) => row.metric === metric && keeperOf(row.backend) !== 'memory')
      return bars.length === 0 ? [] : [fileOf(name, says, metric, bars, metric === main ? '' : '-p99')]
    })
  })
}

function fileOf(scenario: string, says: string, metric: Metric, rows: readonly Row[], suffix: string): ChartFile {
  const isMore = METRICS[metric].better === 'more'
  const best = [...rows].sort((a, b) => (isMore ? b.median - a.median : a.median - b.median))
  const title = `${scenario}: ${METRIC_LABELS[metric]}, ${isMore ? 'more' : 'less'} is better`
  const list = best.map((row) => `${displayName(nameOf(row))} ${shown(row.median)}`).join(', ')
  const svg = chartOf({
    title,
    description: `${says}. Best first: ${list}. The thin line spans the runs.`,
    bars: best.map((row) => ({
      label: displayName(nameOf(row)),
      value: row.median,
      min: row.min,
      max: row.max,
      text: shown(row.median),
      isOurs: row.system === OURS,
    })),
  })
  return { scenario, name: `${scenario}${suffix}.svg`, title, svg }
}
