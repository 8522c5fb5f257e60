// npm run sim: simulates seeds and reports. Exit 0: every invariant held and everything was covered;
// 1: a seed failed, a planted bug was not found, or something was never hit; 2: wrong usage.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { findPlanted, runCampaign } from './campaign.ts'
import type { Campaign, Planted } from './campaign.ts'
import { PLANTED_BUGS, plant } from '../../src/core/planted.ts'
import { simulate } from './simulation.ts'
import type { SimStore } from './simulation.ts'

const USAGE = `npm run sim -- [options]

  --seeds N     simulate N seeds (default 200)
  --from S      the first of them (default 1)
  --seed S      simulate one seed, and print the end of its trace if it fails
  --trace       with --seed: print the whole trace
  --planted     switch on one planted bug after the other; each must be found within --seeds seeds (default 500)
  --hybrid      over the hybrid backend instead of the memory backend
  --bug NAME    with --seed: with this planted bug; with --planted: this one alone
  --json FILE   write the result as JSON
`

/** Fewer seeds cannot be expected to hit everything. */
const COVERAGE_SEEDS_MIN = 200

async function main(): Promise<number> {
  const options = readOptions()
  if (options === null) return 2
  if (options.help) {
    console.log(USAGE)
    return 0
  }
  const startedMs = performance.now()
  const seconds = (): number => Math.round((performance.now() - startedMs) / 100) / 10
  const kind = options.hybrid ? 'hybrid' : 'memory'
  if (options.seed !== null) {
    plant(PLANTED_BUGS.find((bug) => bug === options.bug))
    return runOne(options.seed, options.trace, options.json, kind)
  }
  if (options.planted) {
    const bugs = PLANTED_BUGS.filter((bug) => options.bug === null || bug.startsWith(options.bug))
    const planted = await findPlanted(options.seeds ?? 500, printPlanted, bugs)
    write(options.json, { seeds: options.seeds ?? 500, failed: [], seconds: seconds(), planted })
    const missed = planted.filter(({ foundAtSeed }) => foundAtSeed === null)
    console.log(`${planted.length - missed.length} of ${planted.length} planted bugs found in ${seconds()} s`)
    return missed.length === 0 ? 0 : 1
  }
  const count = options.seeds ?? 200
  const campaign = await runCampaign(
    Array.from({ length: count }, (_, index) => (options.from ?? 1) + index),
    kind,
  )
  printCampaign(campaign, seconds())
  const failed = campaign.failures.map(({ seed, invariant, step }) => ({ seed, invariant, step }))
  write(options.json, { ...campaign, failed, seconds: seconds() })
  const uncovered = count >= COVERAGE_SEEDS_MIN && campaign.neverHit.length > 0
  const { workers, jobs, faults } = campaign.minimums
  const thin = workers < 3 || jobs < 100 || faults < 10
  if (thin) console.log('some seeds were too thin: at least 3 workers, 100 jobs and 10 faults are asked of each')
  return campaign.failures.length > 0 || uncovered || thin ? 1 : 0
}

async function runOne(seed: number, wholeTrace: boolean, json: string | null, kind: SimStore): Promise<number> {
  const result = await simulate(seed, true, kind)
  const again = await simulate(seed, false, kind)
  const { violation, steps, jobs, traceHash, trace } = result
  console.log((wholeTrace ? trace : violation === null ? [] : trace.slice(-60)).join('\n'))
  console.log(`seed ${seed}: ${steps} steps, ${jobs} jobs, trace ${traceHash}, replay ${again.traceHash}`)
  if (violation !== null) console.log(`VIOLATED ${violation.invariant}: ${violation.message}`)
  const failed = violation === null ? [] : [{ seed, invariant: violation.invariant, step: steps }]
  write(json, { seeds: 1, failed, steps, traceHash, seconds: 0 })
  return violation === null && again.traceHash === traceHash ? 0 : 1
}

function printPlanted({ bug, foundAtSeed, asked, invariant }: Planted): void {
  console.log(
    foundAtSeed === null
      ? `${bug}: NOT FOUND`
      : `${bug}: found at seed ${foundAtSeed}, the ${asked}. asked (${invariant})`,
  )
}

function printCampaign(campaign: Campaign, seconds: number): void {
  const { seeds, steps, jobs, failures, edges, faults, failpoints, notables, neverHit, minimums } = campaign
  console.log(`${seeds} seeds, ${steps} steps, ${jobs} jobs in ${seconds} s`)
  console.log(`each seed: >= ${minimums.workers} workers, >= ${minimums.jobs} jobs, >= ${minimums.faults} faults`)
  for (const [title, counts] of Object.entries({ edges, faults, failpoints, notables })) {
    const list = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
    console.log(`${title}: ${list.join(', ')}`)
  }
  for (const { seed, invariant, message, step, replays } of failures) {
    console.log(`seed ${seed} VIOLATED ${invariant} at step ${step}${replays ? '' : ' (does not replay!)'}: ${message}`)
  }
  if (neverHit.length > 0) console.log(`never hit: ${neverHit.join(', ')}`)
  console.log(failures.length === 0 ? 'every invariant held' : `${failures.length} seeds failed`)
}

interface Options {
  readonly help: boolean
  readonly seeds: number | null
  readonly seed: number | null
  readonly from: number | null
  readonly planted: boolean
  readonly hybrid: boolean
  readonly bug: string | null
  readonly trace: boolean
  readonly json: string | null
}

function readOptions(): Options | null {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean' },
        seeds: { type: 'string' },
        seed: { type: 'string' },
        from: { type: 'string' },
        planted: { type: 'boolean' },
        hybrid: { type: 'boolean' },
        bug: { type: 'string' },
        trace: { type: 'boolean' },
        json: { type: 'string' },
      },
    })
    return {
      help: values.help ?? false,
      seeds: wholeNumber(values.seeds, '--seeds'),
      seed: wholeNumber(values.seed, '--seed'),
      from: wholeNumber(values.from, '--from'),
      planted: values.planted ?? false,
      hybrid: values.hybrid ?? false,
      bug: values.bug ?? null,
      trace: values.trace ?? false,
      json: values.json ?? null,
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    console.error(USAGE)
    return null
  }
}

function wholeNumber(text: string | undefined, option: string): number | null {
  if (text === undefined) return null
  if (!/^\d{1,9}$/.test(text) || Number(text) === 0)
    throw new TypeError(`${option} takes a whole number above 0, not '${text}'`)
  return Number(text)
}

function write(file: string | null, value: unknown): void {
  if (file !== null) writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}

process.exitCode = await main()
