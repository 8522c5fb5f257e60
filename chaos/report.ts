// What a run says, for programs: written after each cell, so that a run that is cut short has said what it knows. The
// shape of the JSON is stable; fields are only ever added.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { cpus, platform, release, totalmem } from 'node:os'
import { dirname } from 'node:path'
import type { Cell } from './cell.ts'
import type { Pace } from './scenario.ts'

export interface ChaosReport {
  /** When the run began. */
  readonly date: string
  readonly pace: Pace
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryGiB: number; readonly os: string }
  readonly node: string
  readonly versions: Readonly<Record<string, string>>
  /** How each system was set up. */
  readonly settings: Readonly<Record<string, string>>
  readonly cells: readonly Cell[]
}

export function emptyReport(equipment: Pick<ChaosReport, 'pace' | 'node' | 'versions' | 'settings'>): ChaosReport {
  const [cpu] = cpus()
  return {
    date: new Date().toISOString().slice(0, 10),
    ...equipment,
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      os: `${platform()} ${release()}`,
    },
    cells: [],
  }
}

export function readReport(path: string): ChaosReport | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as ChaosReport) : undefined // written below
}

export function writeReport(path: string, report: ChaosReport): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, `${JSON.stringify(report, null, 2)}\n`)
  renameSync(`${path}.new`, path)
}

/** A cell that was played again takes the place of the old one. */
export function withCell(report: ChaosReport, cell: Cell): ChaosReport {
  const others = report.cells.filter((one) => keyOf(one) !== keyOf(cell))
  return { ...report, cells: [...others, cell] }
}

export function keyOf({ scenario, system, backend }: Pick<Cell, 'scenario' | 'system' | 'backend'>): string {
  return `${scenario} ${system}:${backend}`
}
