// docs/benchmarks.md, from a report to text.
import { SCENARIOS } from '../catalogue.ts'
import type { Report, Row } from '../report.ts'
import type { Metric } from '../scenario.ts'
import { chartsOf } from './charts.ts'
import type { ChartFile } from './charts.ts'
import { absentOf, hardestOf, lossesOf, metricsIn, missingOf, secondProcessesOf } from './findings.ts'
import type { Comparison } from './findings.ts'
import { standingsOf, unsetOf, wordsOf } from './floors.ts'
import { tableOf } from './markdown.ts'
import { METRIC_LABELS, displayName, nameOf, shown, spreadOf } from './names.ts'
import { originOf, warningOf } from './origin.ts'

export function renderPage(report: Report): string {
  const parts = [
    `<!-- Generated from docs/data/bench.json by \`npm run bench:docs\`. Do not edit. -->`,
    '# Benchmarks',
    originOf(report),
    warningOf(report),
    `Numbers depend on the machine: \`npm run bench\` makes them on yours; \`npm run bench -- --full\` plays every scenario with all systems. Each
number is the median of its runs; what a scenario is about has the least and the most in brackets.`,
    missing(report),
    floors(report),
    standing(report),
    losses(report),
    secondProcess(report),
    '## All results\n\nSome systems have more runs of a scenario than others, as the column says; the runs that only some of them have come last.',
    ...scenarios(report),
    settings(report),
    `## How it is measured\n\n${report.method.map((sentence) => `- ${sentence}`).join('\n')}\n${report.notes.map((note) => `- ${note}.`).join('\n')}`,
  ]
  return `${parts.filter((part) => part !== undefined).join('\n\n')}\n`
}

/** Who has no numbers where others have: a run failed, and nobody is told by an empty place. */
function missing({ results, settings }: Report): string | undefined {
  const found = missingOf(results, Object.keys(settings))
  if (found.length === 0) return undefined
  const list = found.map(({ scenario, target }) => `- ${scenario}: ${displayName(target)}`)
  return `**Not in the tables**, because a run failed or was not made:\n\n${list.join('\n')}`
}

function floors({ results }: Report): string | undefined {
  const found = standingsOf(results)
  if (found.length === 0) return undefined
  const head = ['scenario', 'Millrace', 'does', 'beside', 'which does', 'at least', 'in this run', 'reached']
  const unset = unsetOf(results)
  const outOfTheBox =
    unset === undefined
      ? ''
      : `\n\nThe hybrid has its window raised here. With nothing set (${unset.own.scenario}) most of the backlog goes through PostgreSQL and the relay: ` +
        `${spreadOf(unset.own)} jobs/s, ${shown(unset.factor)} × Millrace on PostgreSQL alone.`
  return `## What Millrace has to reach

Jobs per second, medians of this run with the least and the most. *The runs overlap* where the medians say one thing and the least of one side
beside the most of the other says another: chance may have decided.

${tableOf(head, found.map(wordsOf))}${outOfTheBox}`
}

function standing({ results }: Report): string {
  const rows = hardestOf(results).map((one) => [
    one.scenario,
    displayName(one.ours),
    METRIC_LABELS[one.metric],
    spreadOf(one.own),
    `${displayName(one.peer)}: ${spreadOf(one.other)}`,
    `${shown(one.factor)} ×${one.isClear ? '' : ' (the runs overlap)'}`,
  ])
  return `## Beside the best peer

How many times better Millrace is than the best of the others that were measured on the same store; below 1 it is worse. The hybrid promises what PostgreSQL does, and
is compared with everybody, also with those on Redis, which promise less. What lives in memory is compared with nobody.

${tableOf(['scenario', 'Millrace', 'of', 'Millrace does', 'best peer', 'times better'], rows)}`
}

function losses({ results }: Report): string {
  const { headlines, costs } = lossesOf(results)
  return `## Where we lose

Every number of this run in which a peer is ahead. What a scenario is about:

${lossTable(headlines)}

What it costs (some peers keep less: Graphile Worker deletes a finished job, Millrace keeps every job and attempt):

${lossTable(costs)}`
}

function lossTable(losses: readonly Comparison[]): string {
  if (losses.length === 0) return 'None.'
  const rows = losses.map((one) => [
    one.scenario,
    METRIC_LABELS[one.metric],
    `${displayName(one.ours)}: ${shown(one.own.median)}`,
    `${displayName(one.peer)}: ${shown(one.other.median)}`,
    `${shown(1 / one.factor)} ×${one.isClear ? '' : ' (the runs overlap)'}`,
  ])
  return tableOf(['scenario', 'of', 'Millrace', 'peer', 'peer is better'], rows)
}

function secondProcess({ results }: Report): string | undefined {
  const found = secondProcessesOf(results)
  if (found.length === 0) return undefined
  const rows = found.map(({ scenario, target, one, two, factor, cpuPercents }) => [
    scenario,
    displayName(target),
    spreadOf(one),
    spreadOf(two),
    `${shown(factor)} ×`,
    cpuPercents.map((percent) => `${shown(percent)} %`).join(', '),
  ])
  const head = ['scenario', 'system', 'one process, jobs/s', 'two, jobs/s', 'factor', 'CPU of the two, of a core each']
  return `## A second worker process\n\n${tableOf(head, rows)}`
}

function scenarios(report: Report): readonly string[] {
  const charts = chartsOf(report)
  return SCENARIOS.flatMap(({ name, says }) => {
    const rows = report.results.filter(({ scenario }) => scenario === name)
    if (rows.length === 0) return []
    const pictures = charts.filter(({ scenario }) => scenario === name).map(picture)
    return [
      `### ${name}`,
      `${says[0]!.toUpperCase()}${says.slice(1)}.`,
      ...pictures,
      scenarioTable(rows),
      ...absent(report, name),
    ]
  })
}

/** Who could have played, and does not by default: nothing is said of them. */
function absent({ results, settings }: Report, scenario: string): readonly string[] {
  const names = absentOf(results, Object.keys(settings), scenario).map(displayName)
  return names.length === 0 ? [] : [`Only with \`--full\`, so not compared here: ${names.join(', ')}.`]
}

function picture({ name, title }: ChartFile): string {
  return `![${title}](charts/${name})`
}

function scenarioTable(rows: readonly Row[]): string {
  const metrics = metricsIn(rows)
  const [main] = metrics
  const hasNotes = rows.some(({ note }) => note !== undefined)
  const lines = [...new Set(rows.map(nameOf))].map((target) => {
    const own = rows.filter((row) => nameOf(row) === target)
    const [first] = own
    const cellOf = (metric: Metric): string => {
      const row = own.find((one) => one.metric === metric)
      if (row === undefined) return ''
      return metric === main || metric === 'p99_ms' ? spreadOf(row) : shown(row.median)
    }
    const about = [shown(first!.jobs), String(first!.runs), first!.durability, ...(hasNotes ? [first!.note ?? ''] : [])]
    return [displayName(target), ...metrics.map(cellOf), ...about]
  })
  const head = ['system', ...metrics.map((metric) => METRIC_LABELS[metric]), 'jobs', 'runs', 'durability']
  return tableOf([...head, ...(hasNotes ? ['note'] : [])], lines)
}

function settings({ settings: bySystem, durability }: Report): string {
  const rows = Object.entries(bySystem).map(([target, text]) => [displayName(target), text, durability[target] ?? ''])
  return `## Settings

Each peer is set up as its own documentation advises for speed, Graphile Worker also with its defaults; every row has the durability of its backend.

${tableOf(['system', 'settings', 'what survives a crash'], rows)}`
}
