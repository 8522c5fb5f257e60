// What is measured, and in which order: scenario by scenario, and within one scenario round by round, each
// system once per round; what is compared with another scenario has its rounds together with that one. A machine that slows
// down for a minute slows them all, not the one whose turn it was. Every round has an order of its own, so that nobody
// always follows one who leaves a warm or a tired machine behind.
import { BACKENDS, keeperOf } from './backends.ts'
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import { RUNS_DEFAULT } from './scenario.ts'
import type { Scenario } from './scenario.ts'

/** One thing to measure. */
export interface Cell {
  readonly system: string
  readonly backend: string
  readonly scenario: string
  readonly jobs: number
  readonly runs: number
}

/** What somebody asks for instead of what a scenario does by itself. */
export interface Asked {
  readonly jobs?: number | undefined
  readonly runs?: number | undefined
}

export interface Target {
  readonly system: string
  readonly backend: string
}

/** One measurement of a cell. */
export interface Turn {
  readonly cell: Cell
  /** From 1. */
  readonly run: number
}

export function cellsOf(
  targets: readonly Target[],
  scenarios: readonly Scenario[],
  asked: Asked = {},
): readonly Cell[] {
  return scenarios.flatMap((scenario) =>
    targets.flatMap((target) => {
      if (!canPlay(target, scenario)) return []
      const usual = scenario.jobs[keeperOf(target.backend)]!
      const jobs = Math.min(asked.jobs ?? usual, scenario.jobsMax ?? Infinity)
      return { ...target, scenario: scenario.name, jobs, runs: asked.runs ?? runsOf(target, scenario) }
    }),
  )
}

/** Without `--scenario` and `--full`. */
export function usualCellsOf(targets: readonly Target[], asked: Asked = {}): readonly Cell[] {
  return SCENARIOS.flatMap((scenario) =>
    cellsOf(
      targets.filter((target) => isUsual(target, scenario)),
      [scenario],
      asked,
    ),
  )
}

export function canPlay(target: Target, { jobs, only }: Pick<Scenario, 'jobs' | 'only'>): boolean {
  return jobs[keeperOf(target.backend)] !== undefined && isAmong(target, only)
}

export function isUsual(target: Target, { usual }: Pick<Scenario, 'usual'>): boolean {
  return isAmong(target, usual)
}

/** Absent names: everybody is. */
function isAmong({ system, backend }: Target, names: readonly string[] | undefined): boolean {
  return names === undefined || names.includes(system) || names.includes(`${system}:${backend}`)
}

function runsOf({ system, backend }: Target, { runs, runsOf: own }: Scenario): number {
  return own?.[`${system}:${backend}`] ?? runs ?? RUNS_DEFAULT
}

export function turnsOf(cells: readonly Cell[]): readonly Turn[] {
  const groupOf = ({ scenario }: Cell): string => scenarioOf(scenario).beside ?? scenario
  const groups = [...new Set(cells.map(groupOf))]
  return groups.flatMap((group) => {
    const same = cells.filter((cell) => groupOf(cell) === group)
    const rounds = Array.from({ length: Math.max(...same.map(({ runs }) => runs)) }, (_, index) => index + 1)
    return rounds.flatMap((run) =>
      inOrderOf(
        run,
        same.filter(({ runs }) => run <= runs),
      ).map((cell) => ({ cell, run })),
    )
  })
}

/**
 * Every second round is the one before from its end; the third is dealt into two piles, the fifth into three, and so on. The
 * same each time, so that a benchmark which goes on finds the plan it left.
 */
function inOrderOf<Item>(round: number, items: readonly Item[]): readonly Item[] {
  const piles = 1 + (Math.floor((round - 1) / 2) % Math.max(1, items.length - 1))
  const dealt = Array.from({ length: piles }, (_, pile) =>
    items.filter((_item, index) => index % piles === pile),
  ).flat()
  return round % 2 === 0 ? dealt.reverse() : dealt
}

export function allTargets(): readonly Target[] {
  return Object.keys(SYSTEMS).flatMap(targetsOf)
}

/** `SYSTEM` or `SYSTEM:BACKEND`. */
export function targetsOf(text: string): readonly Target[] {
  const [system = '', backend, ...rest] = text.split(':')
  const entry = Object.hasOwn(SYSTEMS, system) ? SYSTEMS[system] : undefined
  if (entry === undefined || rest.length > 0) {
    throw new Error(`--only ${text}: no such system; there are ${Object.keys(SYSTEMS).join(', ')}`)
  }
  if (backend === undefined) {
    return entry.backends.filter((name) => !BACKENDS[name]?.isOnRequest).map((name) => ({ system, backend: name }))
  }
  if (entry.backends.includes(backend)) return [{ system, backend }]
  throw new Error(`--only ${text}: ${system} is measured on ${entry.backends.join(', ')}`)
}

export function scenarioOf(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name)
  if (scenario !== undefined) return scenario
  throw new Error(`--scenario ${name}: no such scenario; there are ${SCENARIOS.map((one) => one.name).join(', ')}`)
}
