// What the numbers say: how Millrace stands beside the best peer, where a peer is ahead, and what a second process brings.
import { OURS, SCENARIOS } from '../catalogue.ts'
import { ratiosOf } from '../ratios.ts'
import type { Ratio } from '../ratios.ts'
import { canPlay, isUsual } from '../plan.ts'
import type { Row } from '../report.ts'
import { METRIC_NAMES } from '../scenario.ts'
import type { Metric } from '../scenario.ts'
import { nameOf } from './names.ts'

/** What a scenario is about, as opposed to what it costs. */
const HEADLINES: readonly Metric[] = ['jobs_per_s', 'p50_ms', 'p99_ms', 'bytes_per_job']

export interface Comparison extends Ratio {
  readonly own: Row
  readonly other: Row
  /** Whether the runs of the two lie apart, so that the order is not one of chance. */
  readonly isClear: boolean
}

/** With peers, never with ourselves. */
export function comparisonsOf(rows: readonly Row[]): readonly Comparison[] {
  return ratiosOf(rows)
    .filter(({ peer }) => !peer.startsWith(`${OURS}:`))
    .map((ratio) => {
      const find = (name: string): Row =>
        rows.find((row) => nameOf(row) === name && row.scenario === ratio.scenario && row.metric === ratio.metric)!
      const [own, other] = [find(ratio.ours), find(ratio.peer)]
      return { ...ratio, own, other, isClear: own.min > other.max || own.max < other.min }
    })
}

/** The hardest peer for each of our backends, in what the scenarios are about. */
export function hardestOf(rows: readonly Row[]): readonly Comparison[] {
  const all = comparisonsOf(rows).filter(({ metric }) => HEADLINES.includes(metric))
  return all.filter((one) => all.filter((other) => isSameCell(one, other)).every(({ factor }) => factor >= one.factor))
}

/** Every number in which a peer is ahead, the largest distance first; the subject of a scenario before its costs. */
export function lossesOf(rows: readonly Row[]): {
  readonly headlines: readonly Comparison[]
  readonly costs: readonly Comparison[]
} {
  const losses = comparisonsOf(rows)
    .filter(({ factor }) => factor < 1)
    .sort((a, b) => a.factor - b.factor)
  return {
    headlines: losses.filter(({ metric }) => HEADLINES.includes(metric)),
    costs: losses.filter(({ metric }) => !HEADLINES.includes(metric)),
  }
}

export interface Missing {
  readonly scenario: string
  readonly target: string
}

/** Of the scenarios that were played: targets that can play them and have no row. Who does not by default, only where one such has. */
export function missingOf(rows: readonly Row[], targets: readonly string[]): readonly Missing[] {
  return SCENARIOS.flatMap((scenario) => {
    const { name } = scenario
    const played = rows.filter((row) => row.scenario === name)
    if (played.length === 0) return []
    const own = new Set(played.map(nameOf))
    const isForAll = played.some((row) => !isUsual(row, scenario))
    const isMissed = (target: string): boolean => {
      const [system = '', backend = ''] = target.split(':')
      return (
        !own.has(target) &&
        canPlay({ system, backend }, scenario) &&
        (isForAll || isUsual({ system, backend }, scenario))
      )
    }
    return targets.filter(isMissed).map((target) => ({ scenario: name, target }))
  })
}

/** Peers that can play this scenario and do not by default, unless they have a row. */
export function absentOf(rows: readonly Row[], targets: readonly string[], scenario: string): readonly string[] {
  const known = SCENARIOS.find(({ name }) => name === scenario)
  if (known === undefined) return []
  return targets.filter((target) => {
    const [system = '', backend = ''] = target.split(':')
    const isPlayed = rows.some((row) => row.scenario === scenario && nameOf(row) === target)
    return system !== OURS && !isPlayed && canPlay({ system, backend }, known) && !isUsual({ system, backend }, known)
  })
}

/** Metrics of these rows, what the scenario is about first. */
export function metricsIn(rows: readonly Row[]): readonly Metric[] {
  return METRIC_NAMES.filter((metric) => rows.some((row) => row.metric === metric))
}

export interface SecondProcess {
  readonly scenario: string
  readonly target: string
  readonly one: Row
  readonly two: Row
  readonly factor: number
  /** Of each process, busiest first. */
  readonly cpuPercents: readonly number[]
}

/** Scenarios that were played with one process and, under the same name with `x2`, with two. */
export function secondProcessesOf(rows: readonly Row[]): readonly SecondProcess[] {
  const rates = rows.filter(({ metric }) => metric === 'jobs_per_s')
  return rates.flatMap((one) => {
    const isTwin = (row: Row): boolean => row.scenario === `${one.scenario}x2` && nameOf(row) === nameOf(one)
    const two = rates.find(isTwin)
    if (two === undefined) return []
    const cpu = (metric: Metric): readonly number[] =>
      rows.filter((row) => isTwin(row) && row.metric === metric).map(({ median }) => median)
    return {
      scenario: one.scenario,
      target: nameOf(one),
      one,
      two,
      factor: two.median / one.median,
      cpuPercents: [...cpu('worker_cpu_percent'), ...cpu('worker_cpu_min_percent')],
    }
  })
}

function isSameCell(a: Ratio, b: Ratio): boolean {
  return a.ours === b.ours && a.scenario === b.scenario && a.metric === b.metric
}
