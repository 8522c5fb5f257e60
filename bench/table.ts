// What the benchmark says at the end, for people.
import { ratiosOf } from './ratios.ts'
import type { Ratio } from './ratios.ts'
import type { Report, Row } from './report.ts'

export function textOf(report: Report): string {
  const { machine, node, versions, settings, notes, results } = report
  const about = `${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.os}, Node ${node}`
  const installed = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const setUp = Object.entries(settings).map(([name, text]) => `${name}: ${text}`)
  const parts = [
    [about, installed.join(', '), ...notes],
    tableOf(RESULT_HEAD, results.map(lineOf)),
    ['Settings', ...setUp],
    ratioLines(results),
  ]
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')
}

const RESULT_HEAD = [
  'scenario',
  'system',
  'backend',
  'metric',
  'median',
  'min',
  'max',
  'unit',
  'runs',
  'jobs',
  'durability',
  'note',
]

function lineOf(row: Row): readonly string[] {
  return [
    row.scenario,
    row.system,
    row.backend,
    row.metric,
    digits(row.median),
    digits(row.min),
    digits(row.max),
    row.unit,
    String(row.runs),
    String(row.jobs),
    row.durability,
    row.note ?? '',
  ]
}

function ratioLines(rows: readonly Row[]): readonly string[] {
  const ratios = ratiosOf(rows)
  return namesIn(ratios, 'ours').flatMap((ours, index) => [
    ...(index > 0 ? [''] : []),
    `How many times better ${ours} is than each peer in this run (below 1: worse)`,
    ...ratioTable(ratios.filter((ratio) => ratio.ours === ours)),
  ])
}

/** One line per scenario and metric, one column per peer. */
function ratioTable(ratios: readonly Ratio[]): readonly string[] {
  const peers = namesIn(ratios, 'peer')
  const lines = namesIn(ratios, 'scenario').flatMap((scenario) => {
    const same = ratios.filter((ratio) => ratio.scenario === scenario)
    return namesIn(same, 'metric').map((metric) => {
      const factors = peers.map((peer) => same.find((ratio) => ratio.metric === metric && ratio.peer === peer)?.factor)
      return [scenario, metric, ...factors.map((factor) => (factor === undefined ? '' : digits(factor)))]
    })
  })
  return tableOf(['scenario', 'metric', ...peers], lines)
}

function namesIn(ratios: readonly Ratio[], field: 'ours' | 'peer' | 'scenario' | 'metric'): readonly string[] {
  return [...new Set(ratios.map((ratio) => ratio[field]))]
}

export function tableOf(head: readonly string[], lines: readonly (readonly string[])[]): readonly string[] {
  const widths = head.map((title, column) => Math.max(title.length, ...lines.map((line) => line[column]!.length)))
  const print = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (isNumber(cell) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd()
  return [head, ...lines].map(print)
}

/** Three digits that matter; whole numbers from a thousand up. */
export function digits(value: number): string {
  return Math.abs(value) >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}

function isNumber(text: string): boolean {
  return text !== '' && !Number.isNaN(Number(text))
}
