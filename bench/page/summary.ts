// The block of the README about speed, from a report to text: one table per place where jobs can be kept.
import { withBlock } from '../../scripts/readme-block.ts'
import { OURS } from '../catalogue.ts'
import type { Report, Row } from '../report.ts'
import type { Metric } from '../scenario.ts'
import { UNSET_SCENARIO, WINDOW, WINDOW_DEFAULT } from '../window.ts'
import { tableOf } from './markdown.ts'
import { rateOf, unsetOf } from './floors.ts'
import { METRIC_LABELS, displayName, nameOf, shown, spreadOf } from './names.ts'
import { originOf, warningOf } from './origin.ts'

const HYBRID = `${OURS}:hybrid`
const BLOCK = { name: 'bench', data: 'docs/data/bench.json', command: 'bench:docs' }

/** By default; a full run has more. */
const NOT_PLAYED = '–'

/** Who stands beside whom. */
const TABLES: readonly { readonly title: string; readonly backends: readonly string[] }[] = [
  { title: 'On PostgreSQL', backends: ['postgres'] },
  { title: 'On Redis, and Millrace on PostgreSQL and Redis (hybrid)', backends: ['redis', 'hybrid'] },
]

const LINES: readonly { readonly scenario: string; readonly metrics: readonly Metric[]; readonly says: string }[] = [
  { scenario: 'drain-100', metrics: ['jobs_per_s'], says: 'no-op jobs, concurrency 100' },
  { scenario: 'produce-consume', metrics: ['jobs_per_s'], says: 'produce and work at the same time' },
  { scenario: 'held-transaction', metrics: ['jobs_per_s'], says: 'no-op jobs while somebody holds a snapshot' },
  { scenario: 'handlers-10ms', metrics: ['jobs_per_s'], says: 'handlers of 10 ms, concurrency 10' },
  { scenario: 'enqueue-single-100', metrics: ['jobs_per_s'], says: 'enqueue, 100 single calls in flight' },
  { scenario: 'enqueue-bulk-1000', metrics: ['jobs_per_s'], says: 'enqueue in bulks of 1000' },
  { scenario: 'latency-idle', metrics: ['p50_ms', 'p99_ms'], says: 'idle, enqueue call to handler' },
  { scenario: 'latency-500', metrics: ['p50_ms', 'p99_ms'], says: '500 jobs/s, enqueue call to handler' },
  { scenario: 'footprint', metrics: ['bytes_per_job'], says: 'a waiting job' },
]

export function renderSummary(report: Report): string {
  const warning = warningOf(report)
  // Who reads a README takes its numbers for true: those of a short run are only on the page.
  if (warning !== undefined) return `The numbers are in [docs/benchmarks.md](docs/benchmarks.md). ${warning}`
  const tables = TABLES.map(({ title, backends }) => ({ title, table: tableFor(report.results, backends) }))
  const parts = [
    originOf(report),
    `Medians; each peer at its best documented settings; ${NOT_PLAYED}: not played by default. The least and the most, CPU, bytes, charts, the
method and where we lose: [docs/benchmarks.md](docs/benchmarks.md).`,
    ...tables.flatMap(({ title, table }) => (table === undefined ? [] : [`**${title}**`, table])),
    windowOf(report.results),
  ]
  return parts.filter((part) => part !== undefined).join('\n\n')
}

/** With which setting the hybrid was measured, and what it does without. */
function windowOf(results: readonly Row[]): string | undefined {
  if (rateOf(results, HYBRID, 'drain-100') === undefined) return undefined
  const unset = rateOf(results, HYBRID, UNSET_SCENARIO)
  const less =
    unset === undefined
      ? ''
      : ` With nothing set (${UNSET_SCENARIO}) it works off ${spreadOf(unset)} no-op jobs/s${besidePostgres(results)}: what is over the window goes through PostgreSQL.`
  return (
    `The hybrid was measured with its window raised to ${shown(WINDOW)} jobs (default ${shown(WINDOW_DEFAULT)}), so that the whole ` +
    `backlog of no-op jobs is in Redis before the clocks start.${less}`
  )
}

function besidePostgres(results: readonly Row[]): string {
  const { factor = Infinity } = unsetOf(results) ?? {}
  return factor < 1 ? ', fewer than PostgreSQL alone' : ''
}

/** The README with its block replaced. */
export function withSummary(readme: string, summary: string): string {
  return withBlock(readme, BLOCK, summary)
}

function tableFor(results: readonly Row[], backends: readonly string[]): string | undefined {
  const own = results.filter(({ backend }) => backends.includes(backend))
  const ours = own.filter(({ system }) => system === OURS)
  // Ours first.
  const targets = [...new Set([...ours, ...own].map(nameOf))]
  const lines = LINES.flatMap(({ scenario, metrics, says }) => {
    const valuesOf = (target: string): readonly string[] =>
      metrics.flatMap((metric) => {
        const row = own.find((one) => one.scenario === scenario && one.metric === metric && nameOf(one) === target)
        return row === undefined ? [] : [shown(row.median)]
      })
    const cells = targets.map((target) => valuesOf(target).join(' / ') || NOT_PLAYED)
    const isCompared = targets.some((target, index) => !target.startsWith(`${OURS}:`) && cells[index] !== NOT_PLAYED)
    const runs = own.find((row) => row.scenario === scenario)?.runs
    const unit = metrics.map((metric) => METRIC_LABELS[metric].replace(', ms', '')).join(' / ')
    const what = `${says}, ${unit}${metrics.includes('p50_ms') ? ' ms' : ''}${runs === 1 ? ' (one run)' : ''}`
    return isCompared ? [[what, ...cells]] : []
  })
  return lines.length === 0 ? undefined : tableOf(['', ...targets.map(displayName)], lines)
}
