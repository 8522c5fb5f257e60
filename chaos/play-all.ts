// One cell after the other, each told as it ends. A cell that hangs is a result too: what it left is ended, and the next one
// gets other servers.
import { inWords } from '../bench/estimate.ts'
import type { Cell } from './cell.ts'
import { CellHung, atMostAWhile, cellMaxMs, within } from './deadline.ts'
import { secondsLeft } from './estimate.ts'
import type { PlayedCell } from './estimate.ts'
import { play } from './play.ts'
import { keyOf } from './report.ts'
import type { Times } from './scenario.ts'
import type { Servers } from './servers.ts'
import type { Program } from './start-process.ts'
import type { Turn } from './plan.ts'
import type { ChaosSystem } from './system.ts'
import { unplayed } from './unplayed.ts'

export interface PlayAllOptions {
  readonly program: Program
  readonly systems: readonly ChaosSystem[]
  readonly times: Times
  /** Seconds of each cell in an earlier run. */
  readonly known: ReadonlyMap<string, number>
  readonly servers: Servers
  readonly startServers: () => Promise<Servers>
  /** Ends the processes of this program, and lets none of it be started. */
  readonly abandon: (program: Program) => void
  readonly tell: (cell: Cell) => void
  /** Default: that of `play.ts`. */
  readonly playOne?: typeof play
  readonly limitMs?: number
}

/** Answers the servers that there are now. */
export async function playAll(turns: readonly Turn[], options: PlayAllOptions): Promise<Servers> {
  const { systems, times, known, tell, playOne = play, limitMs = cellMaxMs(times) } = options
  let { servers } = options
  const keys = turns.map((turn) => keyOf(named(turn)))
  const played: PlayedCell[] = []
  for (const [index, turn] of turns.entries()) {
    const key = keys[index]!
    const left = inWords(secondsLeft(keys.slice(index), played, known))
    process.stderr.write(`[${index + 1}/${turns.length}, ${left} left] ${key}\n`)
    const { scenario, backend } = turn
    const system = systems.find(({ name }) => name === turn.system)!
    const program = { ...options.program }
    const beganMs = performance.now()
    const outcome = await within(limitMs, playOne({ servers, program, system, backend, scenario, times })).catch(
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    )
    tell(outcome instanceof Error ? unplayed(named(turn), outcome) : outcome)
    played.push({ key, seconds: (performance.now() - beganMs) / 1000 })
    if (!(outcome instanceof CellHung)) continue
    // It may wake up and go on: then at servers that nobody uses, and without processes.
    options.abandon(program)
    await atMostAWhile(servers.close())
    servers = await options.startServers()
  }
  return servers
}

export function named({ scenario, system, backend }: Turn): Pick<Cell, 'scenario' | 'system' | 'backend'> {
  return { scenario: scenario.name, system, backend }
}
