// The command line of the benchmark, as a pure function: arguments in, a plan or a reason to stop out.
import { parseArgs } from 'node:util'
import type { Question } from '../scripts/command-line.ts'
import { BACKENDS } from './backends.ts'
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import { START_S, estimateS, inWords } from './estimate.ts'
import type { Plan } from './journal.ts'
import { METHOD } from './method.ts'
import { allTargets, cellsOf, scenarioOf, targetsOf, turnsOf, usualCellsOf } from './plan.ts'
import type { Cell, Target } from './plan.ts'
import { RUNS_DEFAULT } from './scenario.ts'
import type { Scenario } from './scenario.ts'

export type Command =
  | Question
  | { readonly kind: 'run'; readonly plan: Plan; readonly json: string | undefined }
  | { readonly kind: 'resume'; readonly file: string }

const RUNS_MAX = 1000
const JOBS_MAX = 100_000_000

export const USAGE = `npm run bench -- [options]

Measures Millrace and its peers on this machine, in turns, under the same durability.

  --only SYSTEM[:BACKEND],…   measure only these systems
  --scenario NAME,…           run only these scenarios
  --full                      run all scenarios on all systems
  --runs N                    runs per system and scenario (default ${RUNS_DEFAULT}, or as the scenario says); medians are reported
  --jobs N                    jobs per run instead of the default of the scenario
  --json FILE                 where the results go, a file that is not there yet (default: a new one in bench/results)
  --resume FILE               go on with a benchmark that was interrupted, or whose measurements failed
  --help                      show this

Without options the scenarios marked with * are measured on all systems and those marked with + on some, in about
${inWords(estimateOf(usualCellsOf(allTargets())))} on 2 cores; --full takes about ${inWords(estimateOf(cellsOf(allTargets(), SCENARIOS)))}. The estimate for what was asked is printed at the start.

Systems:
${Object.entries(SYSTEMS)
  .map(([name, { backends }]) => `  ${name.padEnd(26)}  ${backends.map(nameInUsage).join(', ')}`)
  .join('\n')}

  (on request: measured only when --only names it)

Scenarios:
${SCENARIOS.map((scenario) => `${markOf(scenario)} ${scenario.name.padEnd(26)}  ${scenario.says}${runsOf(scenario)}`).join('\n')}

How it measures:
${METHOD.map((sentence) => `  - ${sentence}`).join('\n')}
  - Results are written after every measurement; 'npm run bench:docs -- FILE' makes docs/benchmarks.md of them.

Examples:
  npm run bench -- --scenario drain-100 --runs 5
  npm run bench -- --only millrace:memory
  npm run bench -- --only millrace:redis,bullmq:redis,bee-queue:redis --scenario drain-100
  npm run bench -- --only bullmq:redis,bullmq:redis-no-aof     what the log of Redis costs
  npm run bench -- --only graphile-worker-tuned,pg-boss --scenario latency-idle,latency-500 --json latency.json
  npm run bench -- --full --runs 1 --jobs 5000                 a quick look at everything`

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
        full: { type: 'boolean' },
        resume: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) return { kind: 'help' }
    if (values.resume !== undefined) return resume(values.resume, Object.keys(values))
    const jobs = values.jobs === undefined ? undefined : count('--jobs', values.jobs, JOBS_MAX)
    const runs = values.runs === undefined ? undefined : count('--runs', values.runs, RUNS_MAX)
    if (values.json === '') throw new Error('--json needs the name of a file')
    const targets = values.only === undefined ? allTargets() : list('--only', values.only).flatMap(targetsOf)
    const named = values.scenario === undefined ? undefined : list('--scenario', values.scenario).map(scenarioOf)
    const scenarios = named ?? (values.full ? SCENARIOS : undefined)
    const cells =
      scenarios === undefined ? usualCellsOf(targets, { jobs, runs }) : cellsOf(targets, scenarios, { jobs, runs })
    if (cells.length === 0) throw new Error(`--scenario ${values.scenario}: cannot be played on ${backendsOf(targets)}`)
    return { kind: 'run', plan: { cells }, json: values.json }
  } catch (error) {
    return { kind: 'wrong', message: error instanceof Error ? error.message : String(error) }
  }
}

function resume(file: string, flags: readonly string[]): Command {
  if (file === '') throw new Error('--resume needs the name of a file')
  if (flags.length > 1) throw new Error('--resume goes on with the plan of its file: it takes no other option')
  return { kind: 'resume', file }
}

function estimateOf(cells: readonly Cell[]): number {
  return START_S + estimateS(turnsOf(cells))
}

function markOf({ usual, only }: Scenario): string {
  if (usual === undefined && only === undefined) return '*'
  return usual?.length === 0 ? ' ' : '+'
}

function runsOf({ runs = RUNS_DEFAULT, runsOf: runsOfSome = {} }: Scenario): string {
  const most = Math.max(runs, ...Object.values(runsOfSome))
  if (most > runs) return ` (ours up to ${most} runs)`
  return runs === RUNS_DEFAULT ? '' : runs === 1 ? ' (one run)' : ` (${runs} runs)`
}

function backendsOf(targets: readonly Target[]): string {
  return [...new Set(targets.map(({ backend }) => backend))].join(', ')
}

function nameInUsage(backend: string): string {
  return BACKENDS[backend]?.isOnRequest ? `${backend} (on request)` : backend
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
