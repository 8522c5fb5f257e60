// What a run says, for programs: written after each cell, so that a run that is cut short has said what it knows. The
// shape of the JSON is stable; fields are only ever added.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { cpus, platform, release, totalmem } from 'node:os'
import { dirname } from 'node:path'
import type { Cell } from './cell.ts'
import type { Method } from './method.ts'
import type { Pace } from './scenario.ts'
import { isPlayed } from './unplayed.ts'

export interface ChaosReport {
  /** When the run began: the day, and the moment. Results of before moments were written down have the day alone. */
  readonly date: string
  readonly startedAt?: string
  /** When the last cell ended. */
  readonly endedAt?: string
  /** Between the last cell before the run was cut short and the moment when it was gone on with, each time. */
  readonly pausesSeconds?: readonly number[]
  readonly pace: Pace
  readonly method: Method
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryGiB: number; readonly os: string }
  readonly node: string
  readonly versions: Readonly<Record<string, string>>
  /** How each system was set up. */
  readonly settings: Readonly<Record<string, string>>
  readonly cells: readonly Cell[]
}

export function emptyReport(
  equipment: Pick<ChaosReport, 'pace' | 'method' | 'node' | 'versions' | 'settings'>,
  now: string,
): ChaosReport {
  const [cpu] = cpus()
  return {
    date: now.slice(0, 10),
    startedAt: now,
    endedAt: now,
    pausesSeconds: [],
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
  if (!existsSync(path)) return undefined
  // What writeReport wrote; what older ones lack is looked at here.
  const report = JSON.parse(readFileSync(path, 'utf8')) as Partial<ChaosReport>
  const isWhole = report.method !== undefined && report.cells?.every(({ promised }) => promised !== undefined)
  if (isWhole) return report as ChaosReport
  throw new Error(
    `${path} is no result of this chaos suite, or of an older one: it does not say what was promised and how it was played. Play it again: npm run chaos -- --json FILE`,
  )
}

export function writeReport(path: string, report: ChaosReport): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, `${JSON.stringify(report, null, 2)}\n`)
  renameSync(`${path}.new`, path)
}

/** Why a report cannot be gone on with here; empty if it can. Systems that it does not have may come to it. */
export function differencesOf(then: ChaosReport, now: ChaosReport): readonly string[] {
  const differ = (what: string, before: unknown, today: unknown): readonly string[] => {
    const [old, fresh] = [JSON.stringify(before), JSON.stringify(today)]
    return old === fresh ? [] : [`${what} was ${old} and is now ${fresh}`]
  }
  const shared = (part: 'versions' | 'settings'): readonly string[] =>
    Object.entries(now[part]).flatMap(([name, text]) => differ(`${part} of ${name}`, then[part][name] ?? text, text))
  const { phaseSeconds, ttlSeconds, ...words } = now.method
  const isToldOtherwise = JSON.stringify({ phaseSeconds, ttlSeconds, ...words }) !== JSON.stringify(then.method)
  const times = (['phaseSeconds', 'ttlSeconds'] as const).flatMap((part) =>
    differ(part, then.method[part], now.method[part]),
  )
  return [
    ...(['pace', 'machine', 'node'] as const).flatMap((part) => differ(part, then[part], now[part])),
    ...times,
    ...(isToldOtherwise && times.length === 0 ? ['its scenarios or its method were described in other words'] : []),
    ...shared('versions'),
    ...shared('settings'),
  ]
}

/** With the cells that were played; those that broke the harness are tried again. */
export function goneOnWith(old: ChaosReport, { versions, settings, startedAt }: ChaosReport): ChaosReport {
  const { endedAt, pausesSeconds = [] } = old
  const pause = endedAt === undefined || startedAt === undefined ? [] : [secondsBetween(endedAt, startedAt)]
  return {
    ...old,
    pausesSeconds: [...pausesSeconds, ...pause],
    versions: { ...old.versions, ...versions },
    settings: { ...old.settings, ...settings },
    cells: old.cells.filter(isPlayed),
  }
}

/** A cell that was played again takes the place of the old one. */
export function withCell(report: ChaosReport, cell: Cell, now: string): ChaosReport {
  const others = report.cells.filter((one) => keyOf(one) !== keyOf(cell))
  return { ...report, endedAt: now, cells: [...others, cell] }
}

/** From the start to the end of the last cell, without pauses. Undefined: nobody wrote it down. */
export function playedSeconds({ startedAt, endedAt, pausesSeconds = [] }: ChaosReport): number | undefined {
  if (startedAt === undefined || endedAt === undefined) return undefined
  return pausesSeconds.reduce((left, pause) => left - pause, secondsBetween(startedAt, endedAt))
}

function secondsBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / 1000)
}

export function keyOf({ scenario, system, backend }: Pick<Cell, 'scenario' | 'system' | 'backend'>): string {
  return `${scenario} ${system}:${backend}`
}
