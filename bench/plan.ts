// What is measured, and in which order: scenario by scenario, and within one scenario round by round, each
// system once per round. A machine that slows down for a minute slows them all, not the one whose turn it was.
import { BACKENDS, keeperOf } from './backends.ts'
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import type { Scenario } from './scenario.ts'

/** One thing to measure. */
export interface Cell {
  readonly system: string
  readonly backend: string
  readonly scenario: string
  readonly jobs: number
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
  jobs: number | undefined,
): readonly Cell[] {
  return scenarios.flatMap((scenario) =>
    targets.flatMap(({ system, backend }) => {
      const usual = scenario.jobs[keeperOf(backend)]
      // A scenario that cannot be played there.
      if (usual === undefined) return []
      return { system, backend, scenario: scenario.name, jobs: Math.min(jobs ?? usual, scenario.jobsMax ?? Infinity) }
    }),
  )
}

export function turnsOf(cells: readonly Cell[], runs: number): readonly Turn[] {
  const scenarios = [...new Set(cells.map(({ scenario }) => scenario))]
  const rounds = Array.from({ length: runs }, (_, index) => index + 1)
  return scenarios.flatMap((scenario) => {
    const same = cells.filter((cell) => cell.scenario === scenario)
    return rounds.flatMap((run) => same.map((cell) => ({ cell, run })))
  })
}

export function usualScenarios(isFull = false): readonly Scenario[] {
  return isFull ? SCENARIOS : SCENARIOS.filter(({ isFullOnly }) => !isFullOnly)
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
