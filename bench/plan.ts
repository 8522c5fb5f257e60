// What is measured, and in which order: scenario by scenario, and within one scenario round by round, each
// system once per round; what is compared with another scenario has its rounds together with that one. A machine that slows
// down for a minute slows them all, not the one whose turn it was.
import { BACKENDS, keeperOf } from './backends.ts'
import { OURS, SCENARIOS, SYSTEMS } from './catalogue.ts'
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
    targets.flatMap(({ system, backend }) => {
      const usual = scenario.jobs[keeperOf(backend)]
      // A scenario that cannot be played there.
      if (usual === undefined) return []
      const jobs = Math.min(asked.jobs ?? usual, scenario.jobsMax ?? Infinity)
      return { system, backend, scenario: scenario.name, jobs, runs: asked.runs ?? scenario.runs ?? RUNS_DEFAULT }
    }),
  )
}

/** Without `--scenario` and `--full`. */
export function usualCellsOf(targets: readonly Target[], asked: Asked = {}): readonly Cell[] {
  const ours = targets.filter(({ system }) => system === OURS)
  return SCENARIOS.flatMap((scenario) => {
    if (scenario.usual === 'nobody') return []
    return cellsOf(scenario.usual === 'ours' ? ours : targets, [scenario], asked)
  })
}

export function turnsOf(cells: readonly Cell[]): readonly Turn[] {
  const groupOf = ({ scenario }: Cell): string => scenarioOf(scenario).beside ?? scenario
  const groups = [...new Set(cells.map(groupOf))]
  return groups.flatMap((group) => {
    const same = cells.filter((cell) => groupOf(cell) === group)
    const rounds = Array.from({ length: Math.max(...same.map(({ runs }) => runs)) }, (_, index) => index + 1)
    return rounds.flatMap((run) => same.flatMap((cell) => (run <= cell.runs ? { cell, run } : [])))
  })
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
