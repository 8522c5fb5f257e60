// `npm run chaos`: plays each cell and writes it down as it finishes. Exit 1 when a promise of ours did not hold.
import { isAnswered } from '../scripts/command-line.ts'
import { ROOT } from '../scripts/compile.ts'
import type { Cell } from './cell.ts'
import { equip } from './equipment.ts'
import { methodOf } from './method.ts'
import { USAGE, parseCommand } from './plan.ts'
import type { Command, Turn } from './plan.ts'
import { play } from './play.ts'
import { differencesOf, emptyReport, goneOnWith, keyOf, readReport, withCell, writeReport } from './report.ts'
import { fileOf } from './results-file.ts'
import { startServers } from './servers.ts'
import { programOn } from './start-process.ts'
import { OURS, SYSTEM_NAMES, systemOf } from './systems/catalogue.ts'
import { HEAD, lineOf } from './table.ts'
import { unplayed } from './unplayed.ts'

const systems = await Promise.all(SYSTEM_NAMES.map(systemOf))
const command = parseCommand(process.argv.slice(2), systems)
if (!isAnswered(command, USAGE)) {
  const isOk = await run(command).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error)
    return false
  })
  process.exitCode = isOk ? 0 : 1
}

/** Answers whether every promise of ours held. */
async function run({ turns, pace, times, ...asked }: Extract<Command, { kind: 'run' }>): Promise<boolean> {
  const json = fileOf(asked, ROOT, new Date().toISOString())
  const used = systems.filter(({ name }) => turns.some(({ system }) => system === name))
  const servers = await startServers()
  try {
    const { node, nodeVersion, versions } = await equip(
      used.map(({ name }) => name),
      servers,
    )
    const program = await programOn(node)
    const settings = Object.fromEntries(used.map((system) => [system.name, system.settings]))
    const fresh = emptyReport({ pace, method: methodOf(times), node: nodeVersion, versions, settings })
    const old = asked.isResumed ? readReport(json) : undefined
    const differences = old === undefined ? [] : differencesOf(old, fresh)
    if (differences.length > 0) throw new Error(`${json} cannot be gone on with here: ${differences.join('; ')}`)
    let report = old === undefined ? fresh : goneOnWith(old, fresh)
    const known = new Set(report.cells.map(keyOf))
    const left = turns.filter((turn) => !known.has(keyOf(named(turn))) && isPlayable(turn))
    console.log(HEAD)
    for (const [index, turn] of left.entries()) {
      const { scenario, backend } = turn
      process.stderr.write(`[${index + 1}/${left.length}] ${keyOf(named(turn))}\n`)
      const system = used.find(({ name }) => name === turn.system)!
      const cell = await play({ servers, program, system, backend, scenario, times }).catch((error: unknown) =>
        unplayed(named(turn), error),
      )
      console.log(lineOf(cell))
      report = withCell(report, cell)
      writeReport(json, report)
    }
    console.log(`written to ${json}`)
    const own = new Set(turns.map((turn) => keyOf(named(turn))))
    return report.cells.every((cell) => cell.ok || cell.system !== OURS || !own.has(keyOf(cell)))
  } finally {
    await servers.close()
  }
}

function isPlayable(turn: Turn): boolean {
  const why = turn.scenario.isMissing?.()
  if (why !== undefined) process.stderr.write(`${keyOf(named(turn))} is not played: ${why}\n`)
  return why === undefined
}

function named({ scenario, system, backend }: Turn): Pick<Cell, 'scenario' | 'system' | 'backend'> {
  return { scenario: scenario.name, system, backend }
}
