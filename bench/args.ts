// The command line of the benchmark, as a pure function: arguments in, a plan or a reason to stop out.
import { parseArgs } from 'node:util'
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import type { Cell } from './catalogue.ts'
import type { Scenario } from './scenario.ts'

export type Command =
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'run'; readonly cells: readonly Cell[]; readonly runs: number; readonly json: string | undefined }

const RUNS_DEFAULT = 5
const RUNS_MAX = 1000
const JOBS_MAX = 100_000_000

export const USAGE = `npm run bench -- [options]

  --only SYSTEM[:BACKEND],…   measure only these (${Object.keys(SYSTEMS).join(', ')})
  --scenario NAME,…           run only these scenarios
  --runs N                    runs per cell, each in a fresh process (default ${RUNS_DEFAULT})
  --jobs N                    jobs per run instead of the default of the scenario
  --json FILE                 write the results as JSON
  --help                      show this

Scenarios:
${SCENARIOS.map(({ name, says }) => `  ${name.padEnd(26)}  ${says}`).join('\n')}`

export function parseCommand(argv: readonly string[]): Command {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        only: { type: 'string' },
        scenario: { type: 'string' },
        runs: { type: 'string' },
        jobs: { type: 'string' },
        json: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) return { kind: 'help' }
    const jobs = values.jobs === undefined ? undefined : count('--jobs', values.jobs, JOBS_MAX)
    const runs = values.runs === undefined ? RUNS_DEFAULT : count('--runs', values.runs, RUNS_MAX)
    if (values.json === '') throw new Error('--json needs the name of a file')
    const targets = values.only === undefined ? allTargets() : list('--only', values.only).flatMap(targetsOf)
    const scenarios = values.scenario === undefined ? SCENARIOS : list('--scenario', values.scenario).map(scenarioOf)
    return { kind: 'run', cells: plan(targets, scenarios, jobs), runs, json: values.json }
  } catch (error) {
    return { kind: 'wrong', message: error instanceof Error ? error.message : String(error) }
  }
}

interface Target {
  readonly system: string
  readonly backend: string
}

/** Scenario by scenario, so that the systems one compares are measured right after each other. */
function plan(targets: readonly Target[], scenarios: readonly Scenario[], jobs: number | undefined): readonly Cell[] {
  return scenarios.flatMap((scenario) =>
    targets.map(({ system, backend }) => {
      const usual = backend === 'memory' ? scenario.jobs.memory : scenario.jobs.other
      return { system, backend, scenario: scenario.name, jobs: Math.min(jobs ?? usual, scenario.jobsMax ?? Infinity) }
    }),
  )
}

function allTargets(): readonly Target[] {
  return Object.keys(SYSTEMS).flatMap(targetsOf)
}

function targetsOf(text: string): readonly Target[] {
  const [system = '', backend, ...rest] = text.split(':')
  const entry = Object.hasOwn(SYSTEMS, system) ? SYSTEMS[system] : undefined
  if (entry === undefined || rest.length > 0) {
    throw new Error(`--only ${text}: no such system; there are ${Object.keys(SYSTEMS).join(', ')}`)
  }
  if (backend === undefined) return entry.backends.map((name) => ({ system, backend: name }))
  if (entry.backends.includes(backend)) return [{ system, backend }]
  throw new Error(`--only ${text}: ${system} is measured on ${entry.backends.join(', ')}`)
}

function scenarioOf(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name)
  if (scenario !== undefined) return scenario
  throw new Error(`--scenario ${name}: no such scenario; there are ${SCENARIOS.map((one) => one.name).join(', ')}`)
}

function list(flag: string, text: string): readonly string[] {
  const items = [...new Set(text.split(',').map((item) => item.trim()))].filter((item) => item !== '')
  if (items.length === 0) throw new Error(`${flag} needs at least one name`)
  return items
}

function count(flag: string, text: string, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN
  if (value >= 1 && value <= max) return value
  throw new Error(`${flag} ${text}: needs a whole number from 1 to ${max}`)
}
