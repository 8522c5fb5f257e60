// What the benchmark says at the end, for programs. The shape of the JSON is stable; fields are only ever added.
import { readFileSync } from 'node:fs'
import { cpus, platform, release, totalmem } from 'node:os'
import { BACKENDS } from './backends.ts'
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import { methodOf } from './method.ts'
import type { Peers } from './peers.ts'
import type { Cell } from './plan.ts'
import type { BenchServer } from './postgres.ts'
import type { BenchRedis } from './redis.ts'
import { CAP_MS, METRICS, METRIC_NAMES } from './scenario.ts'
import type { Measurement, Metric } from './scenario.ts'
import { summarise } from './stats.ts'
import type { Summary } from './stats.ts'

export interface Row extends Cell, Summary {
  readonly metric: Metric
  readonly unit: string
  readonly durability: string
  /** What to know before reading the numbers. */
  readonly note?: string
}

/** What was measured with, which stands beside every number. */
export interface About {
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryGiB: number; readonly os: string }
  /** That ran every measurement. */
  readonly node: string
  readonly versions: Readonly<Record<string, string>>
  /** By `system:backend`, as the settings. */
  readonly durability: Readonly<Record<string, string>>
  readonly settings: Readonly<Record<string, string>>
  /** About the whole run. */
  readonly notes: readonly string[]
  /** How it was measured. */
  readonly method: readonly string[]
}

export interface Report extends About {
  /** As ISO 8601: the first measurement began, the latest ended. */
  readonly started: string
  readonly ended: string
  readonly results: readonly Row[]
}

/** What measured, beside the measured. */
export interface Equipment {
  readonly peers: Pick<Peers, 'nodeVersion' | 'versions'>
  /** Of Millrace, where git knows it. */
  readonly commit?: string | undefined
  /** Absent when nothing needed it, as Redis. */
  readonly postgres?: Pick<BenchServer, 'version' | 'notes'> | undefined
  readonly redis?: Pick<BenchRedis, 'version' | 'notes'> | undefined
}

export function rowsOf(cell: Cell, measurements: readonly Measurement[]): readonly Row[] {
  const metrics = METRIC_NAMES.filter((metric) => measurements.every(({ values }) => values[metric] !== undefined))
  const note = capNote(cell, measurements)
  return metrics.map((metric) => ({
    ...cell,
    metric,
    ...summarise(measurements.flatMap(({ values }) => values[metric] ?? [])),
    unit: METRICS[metric].unit,
    durability: durabilityOf(cell.backend),
    ...(note !== undefined && { note }),
  }))
}

function capNote({ jobs }: Cell, measurements: readonly Measurement[]): string | undefined {
  const done = measurements.flatMap(({ cappedAtJobs }) => cappedAtJobs ?? [])
  if (done.length === 0) return undefined
  const least = Math.min(...done)
  const most = done.length < measurements.length ? jobs : Math.max(...done)
  return `stopped by time (${CAP_MS / 1000} s) with ${least === most ? least : `${least} to ${most}`} of ${jobs} jobs done`
}

export function aboutOf(cells: readonly Cell[], equipment: Equipment): About {
  const [cpu] = cpus()
  const bySystem = (say: (cell: Cell) => string): Readonly<Record<string, string>> =>
    Object.fromEntries(cells.map((cell) => [`${cell.system}:${cell.backend}`, say(cell)]))
  return {
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      os: `${platform()} ${release()}`,
    },
    node: equipment.peers.nodeVersion,
    versions: versionsOf(cells, equipment),
    durability: bySystem(({ backend }) => durabilityOf(backend)),
    settings: bySystem((cell) => settingsOf(cell, cells)),
    method: methodOf(new Set(cells.map(({ scenario }) => scenario))),
    notes: [equipment.postgres, equipment.redis].flatMap((server) => server?.notes ?? []),
  }
}

/** Of a system on a backend, as far as it matters in what is planned. */
function settingsOf({ system, backend }: Cell, cells: readonly Cell[]): string {
  const own = cells.filter((cell) => cell.system === system && cell.backend === backend)
  const aims = new Set(own.flatMap(({ scenario }) => SCENARIOS.find(({ name }) => name === scenario)?.aim ?? []))
  const parts = (SYSTEMS[system]?.settings ?? []).filter(
    (part) => part.backends?.includes(backend) !== false && part.aims?.some((aim) => aims.has(aim)) !== false,
  )
  return parts.length === 0 ? 'unknown' : parts.map(({ says }) => says).join('; ')
}

function durabilityOf(backend: string): string {
  return BACKENDS[backend]?.durability ?? 'unknown'
}

function versionsOf(
  cells: readonly Cell[],
  { peers, commit, postgres, redis }: Equipment,
): Readonly<Record<string, string>> {
  const used = new Set(cells.flatMap(({ system }) => SYSTEMS[system]?.package ?? []))
  return {
    millrace: [versionOf('../package.json'), commit].filter((part) => part !== undefined).join(' '),
    zod: versionOf('../node_modules/zod/package.json'),
    ...Object.fromEntries(Object.entries(peers.versions).filter(([name]) => used.has(name))),
    ...(postgres && { postgresql: postgres.version, pg: versionOf('../node_modules/pg/package.json') }),
    ...(redis && { redis: redis.version, ioredis: versionOf('../node_modules/ioredis/package.json') }),
  }
}

function versionOf(manifest: string): string {
  // The manifest of a package that npm installed.
  return (JSON.parse(readFileSync(new URL(manifest, import.meta.url), 'utf8')) as { version: string }).version
}
