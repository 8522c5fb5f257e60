// The block of the README about faults, from a report to text: what was played and what came of it.
import { tableOf } from '../bench/page/markdown.ts'
import { withBlock } from '../scripts/readme-block.ts'
import type { Cell } from './cell.ts'
import { DATA } from './render-docs.ts'
import type { ChaosReport } from './report.ts'
import { OURS } from './systems/catalogue.ts'

const BLOCK = { name: 'chaos', data: DATA, command: 'chaos:docs' }

export function renderSummary({ cells, date, machine, node, versions }: ChaosReport): string {
  const installed = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const targets = [...new Set(cells.map(targetOf))].sort((a, b) => rank(a) - rank(b))
  const rows = targets.map((target) =>
    lineOf(
      target,
      cells.filter((cell) => targetOf(cell) === target),
    ),
  )
  const head = [
    '',
    'scenarios',
    'jobs',
    'lost',
    'given up by contract',
    'stuck',
    'stale results',
    'run twice by live workers',
    'nothing amiss',
  ]
  return `Played on ${date} on ${machine.cores} × ${machine.cpu}, Node ${node}; ${installed.join(', ')}; PostgreSQL with fsync, Redis with its log (everysec). Peers play a part of the scenarios and
have promised nothing; each scenario with its numbers, and what was amiss: [docs/reliability.md](docs/reliability.md).

${tableOf(head, rows)}`
}

export function withSummary(readme: string, report: ChaosReport): string {
  return withBlock(readme, BLOCK, renderSummary(report))
}

function targetOf({ system, backend }: Cell): string {
  return `${system} on ${backend}`
}

function rank(target: string): number {
  return target.startsWith(OURS) ? 0 : 1
}

function lineOf(target: string, cells: readonly Cell[]): readonly string[] {
  const sum = (of: (cell: Cell) => number): string => String(cells.reduce((all, cell) => all + of(cell), 0))
  const hasRecord = cells.every(({ stale }) => stale !== null)
  return [
    target,
    String(cells.length),
    sum(({ enqueued }) => enqueued),
    sum(({ lost }) => lost),
    sum(({ givenUp }) => givenUp),
    sum(({ stuck }) => stuck),
    hasRecord ? sum(({ stale }) => stale ?? 0) : '–',
    sum(({ duplicated, duplicatesAllowed }) => duplicated - duplicatesAllowed),
    `${cells.filter(({ ok }) => ok).length} of ${cells.length}`,
  ]
}
