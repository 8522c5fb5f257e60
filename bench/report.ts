// What the benchmark says at the end: one row per cell and metric, as a table for people and as JSON for
// programs. The shape of the JSON is stable; fields are only ever added.
import { readFileSync } from 'node:fs'
import { cpus, platform, release, totalmem } from 'node:os'
import { SYSTEMS } from './catalogue.ts'
import type { Cell } from './catalogue.ts'
import { UNITS } from './scenario.ts'
import type { Measurement, Metric } from './scenario.ts'
import { summarise } from './stats.ts'
import type { Summary } from './stats.ts'

export interface Row extends Cell, Summary {
  readonly metric: Metric
  readonly unit: string
}

export interface Report {
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryGiB: number; readonly os: string }
  readonly node: string
  readonly versions: Readonly<Record<string, string>>
  /** By `system:backend`. */
  readonly durability: Readonly<Record<string, string>>
  readonly results: readonly Row[]
}

export function rowsOf(cell: Cell, measurements: readonly Measurement[]): readonly Row[] {
  const metrics = (Object.keys(UNITS) as Metric[]).filter((metric) => measurements[0]?.[metric] !== undefined)
  return metrics.map((metric) => {
    const values = measurements.flatMap((measurement) => measurement[metric] ?? [])
    return { ...cell, metric, ...summarise(values), unit: UNITS[metric] }
  })
}

export function reportOf(results: readonly Row[]): Report {
  const [cpu] = cpus()
  const durability = results.map((row) => [`${row.system}:${row.backend}`, durabilityOf(row)] as const)
  return {
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      os: `${platform()} ${release()}`,
    },
    node: process.version,
    versions: { millrace: versionOf('../package.json'), zod: versionOf('../node_modules/zod/package.json') },
    durability: Object.fromEntries(durability),
    results,
  }
}

export function tableOf({ machine, node, results }: Report): string {
  const head = ['system', 'backend', 'scenario', 'jobs', 'metric', 'median', 'min', 'max', 'unit', 'runs', 'durability']
  const lines = results.map((row) => [
    row.system,
    row.backend,
    row.scenario,
    String(row.jobs),
    row.metric,
    digits(row.median),
    digits(row.min),
    digits(row.max),
    row.unit,
    String(row.runs),
    durabilityOf(row),
  ])
  const widths = head.map((title, column) => Math.max(title.length, ...lines.map((line) => line[column]!.length)))
  const print = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (isNumber(cell) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
  const about = `${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.os}, Node ${node}`
  return [about, '', ...[head, ...lines].map((line) => print(line).trimEnd())].join('\n')
}

function durabilityOf({ system, backend }: Cell): string {
  return SYSTEMS[system]?.durability[backend] ?? 'unknown'
}

function versionOf(manifest: string): string {
  // The manifest of a package that npm installed.
  return (JSON.parse(readFileSync(new URL(manifest, import.meta.url), 'utf8')) as { version: string }).version
}

/** Three digits that matter; whole numbers from a thousand up. */
function digits(value: number): string {
  return Math.abs(value) >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}

function isNumber(text: string): boolean {
  return text !== '' && !Number.isNaN(Number(text))
}
