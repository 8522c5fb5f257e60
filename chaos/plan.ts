// Which cells are played, from the command line: a pure function.
import { parseArgs } from 'node:util'
import type { Question } from '../scripts/command-line.ts'
import { SCENARIOS } from './phases/catalogue.ts'
import { TIMES } from './scenario.ts'
import type { Pace, Scenario, Times } from './scenario.ts'
import { BACKENDS } from './system.ts'
import type { Backend, ChaosSystem } from './system.ts'
import { OURS, SYSTEM_NAMES } from './systems/catalogue.ts'

export interface Turn {
  readonly scenario: Scenario
  readonly system: string
  readonly backend: Backend
}

export type Command =
  | Question
  | {
      readonly kind: 'run'
      readonly turns: readonly Turn[]
      readonly pace: Pace
      readonly times: Times
      /** Undefined: a file of its own. */
      readonly json: string | undefined
      /** Cells that the file has already are not played again. */
      readonly isResumed: boolean
    }

const PHASES = Object.entries(TIMES)
  .map(([pace, { phaseMs }]) => `${phaseMs / 1000}${pace === 'usual' ? '' : ` with --${pace}`}`)
  .join(', ')

/** The length of a phase: rates over less are luck, and nobody waits for more. */
const SECONDS = { min: 1, max: 600 } as const

export const USAGE = `npm run chaos -- [options]

Plays faults against Millrace and its peers: real processes, real servers, a ledger outside both.

  --only SYSTEM[:BACKEND],…   only these systems (${SYSTEM_NAMES.join(', ')})
  --backend BACKEND,…         only on these (${BACKENDS.join(', ')})
  --scenario NAME,…           only these scenarios
  --full                      longer phases, and peers wherever they can play: hours; the default run is planned for 45 minutes
  --short                     the cut of the tests: seconds per cell
  --seconds N                 the length of a phase, ${SECONDS.min} to ${SECONDS.max} (default: ${PHASES})
  --json FILE                 results, written after each cell; a file that is there already needs --resume
                              (default: chaos/results/TIME.json)
  --resume                    with --json: keep the cells that FILE has, play the others
  --help                      show this

Without --only, --scenario and --full a peer plays where it tells most, on one of its backends; with any of them, wherever it can.

Scenarios:
${SCENARIOS.map(({ name, says }) => `  ${name.padEnd(24)}  ${says}`).join('\n')}

The servers are started by it. Exit 1 when a promise of Millrace did not hold.`

export function parseCommand(argv: readonly string[], systems: readonly ChaosSystem[]): Command {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        only: { type: 'string' },
        backend: { type: 'string' },
        scenario: { type: 'string' },
        seconds: { type: 'string' },
        json: { type: 'string' },
        full: { type: 'boolean', default: false },
        short: { type: 'boolean', default: false },
        resume: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) return { kind: 'help' }
    if (values.full && values.short) throw new Error('--full and --short: one of them')
    if (values.resume && values.json === undefined)
      throw new Error('--resume needs --json FILE: the results to go on with')
    const turns = turnsOf(systems, {
      isFull: values.full,
      only: list(values.only),
      backends: list(values.backend),
      scenarios: list(values.scenario),
    })
    const pace = values.full ? 'full' : values.short ? 'short' : 'usual'
    const times = { ...TIMES[pace], ...phaseOf(values.seconds) }
    return { kind: 'run', turns, pace, times, json: values.json, isResumed: values.resume }
  } catch (error) {
    return { kind: 'wrong', message: error instanceof Error ? error.message : String(error) }
  }
}

interface Chosen {
  readonly isFull: boolean
  readonly only: readonly string[] | undefined
  readonly backends: readonly string[] | undefined
  readonly scenarios: readonly string[] | undefined
}

/** Scenario by scenario, so that what is compared shares the moods of the machine. */
export function turnsOf(
  systems: readonly ChaosSystem[],
  { isFull, only, backends, scenarios }: Chosen,
): readonly Turn[] {
  // Whoever names a scenario wants it of everybody, whoever names a system wants all of it.
  const isAsked = isFull || scenarios !== undefined || only !== undefined
  const targets = only?.map((target) => target.split(':'))
  refuseUnknown(
    'scenario',
    scenarios,
    SCENARIOS.map(({ name }) => name),
  )
  refuseUnknown(
    'system',
    targets?.map(([system]) => system!),
    SYSTEM_NAMES,
  )
  refuseUnknown('backend', [...(backends ?? []), ...(targets ?? []).flatMap(([, ...rest]) => rest)], BACKENDS)
  const turns = SCENARIOS.filter(({ name }) => scenarios?.includes(name) ?? true).flatMap((scenario) =>
    systems
      .filter(({ name }) => name === OURS || (isAsked ? scenario.peers !== 'never' : isUsual(scenario, name)))
      .flatMap(({ name: system, backends: own }) => {
        const possible = own
          .filter((backend) => scenario.backends.includes(backend) && (backends?.includes(backend) ?? true))
          .filter((backend) => isFor(scenario, system, backend))
          .filter((backend) => only?.some((target) => target === system || target === `${system}:${backend}`) ?? true)
        const played = system === OURS || isAsked ? possible : possible.slice(0, 1)
        return played.map((backend) => ({ scenario, system, backend }))
      }),
  )
  if (turns.length === 0) throw new Error('nothing to play: no system has such a scenario on such a backend')
  return turns
}

/** A name with a slip would else be a part of the run that silently is not played. */
function refuseUnknown(kind: string, asked: readonly string[] = [], known: readonly string[]): void {
  const unknown = asked.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`no ${kind} is called '${unknown}'; there are ${known.join(', ')}`)
}

function phaseOf(seconds: string | undefined): Partial<Times> {
  if (seconds === undefined) return {}
  const { min, max } = SECONDS
  const length = Number(seconds)
  if (length >= min && length <= max) return { phaseMs: Math.round(length * 1000) }
  throw new Error(`--seconds ${seconds}: a phase takes a number of seconds from ${min} to ${max}`)
}

function isUsual({ peers, usually }: Scenario, system: string): boolean {
  return peers === 'usual' && (usually?.includes(system) ?? true)
}

function isFor({ among }: Scenario, system: string, backend: Backend): boolean {
  return system === OURS || (among?.some((target) => target === system || target === `${system}:${backend}`) ?? true)
}

function list(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').map((item) => item.trim())
}
