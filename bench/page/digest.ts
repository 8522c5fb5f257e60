// What is kept of a benchmark in the repository: its results without the single turns, numbers with four digits that matter,
// one result per line so that changes can be read.
import type { Report, Row } from '../report.ts'

export function digestOf(report: Report): string {
  const { started, ended, machine, node, versions, durability, settings, notes, method, results } = report
  const head = JSON.stringify({ started, ended, machine, node, versions, durability, settings, notes, method }, null, 2)
  const rows = results.map((row) => `    ${JSON.stringify(shortened(row))}`)
  return `${head.slice(0, -2)},\n  "results": [\n${rows.join(',\n')}\n  ]\n}\n`
}

function shortened(row: Row): Row {
  const short = (value: number): number => Number(value.toPrecision(4))
  return { ...row, median: short(row.median), min: short(row.min), max: short(row.max) }
}
