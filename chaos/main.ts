// `npm run chaos`: plays each cell and writes it down as it finishes. Exit 1 when a promise of ours did not hold.
import type { Cell } from './cell.ts'
import { equip } from './equipment.ts'
import { USAGE, parseCommand } from './plan.ts'
import type { Command, Turn } from './plan.ts'
import { play } from './play.ts'
import { emptyReport, keyOf, readReport, withCell, writeReport } from './report.ts'
import { TIMES } from './scenario.ts'
import { startServers } from './servers.ts'
import { programOn } from './start-process.ts'
import { OURS, SYSTEM_NAMES, systemOf } from './systems/catalogue.ts'
import { HEAD, lineOf } from './table.ts'

const systems = await Promise.all(SYSTEM_NAMES.map(systemOf))
const command = parseCommand(process.argv.slice(2), systems)
switch (command.kind) {
  case 'help':
    console.log(USAGE)
    break
  case 'wrong':
    console.error(`${command.message}\n\n${USAGE}`)
    process.exitCode = 2
    break
  case 'run':
    process.exitCode = (await run(command)) ? 0 : 1
    break
}

/** Answers whether every promise of ours held. */
async function run({ turns, pace, json, isResumed }: Extract<Command, { kind: 'run' }>): Promise<boolean> {
  const used = systems.filter(({ name }) => turns.some(({ system }) => system === name))
  const servers = await startServers()
  try {
    const { node, nodeVersion, versions } = await equip(
      used.map(({ name }) => name),
      servers,
    )
    const program = await programOn(node)
    const settings = Object.fromEntries(used.map((system) => [system.name, system.settings]))
    const old = isResumed ? readReport(json) : undefined
    let report = old ?? emptyReport({ pace, node: nodeVersion, versions: {}, settings: {} })
    report = {
      ...report,
      versions: { ...report.versions, ...versions },
      settings: { ...report.settings, ...settings },
    }
    const known = new Set(report.cells.map(keyOf))
    const left = turns.filter((turn) => !known.has(keyOf(named(turn))))
    console.log(HEAD)
    for (const [index, turn] of left.entries()) {
      const { scenario, backend } = turn
      process.stderr.write(`[${index + 1}/${left.length}] ${keyOf(named(turn))}\n`)
      const system = used.find(({ name }) => name === turn.system)!
      const cell = await play({ servers, program, system, backend, scenario, times: TIMES[pace] }).catch(
        (error: unknown) => unplayed(turn, error),
      )
      console.log(lineOf(cell))
      report = withCell(report, cell)
      writeReport(json, report)
    }
    console.log(`written to ${json}`)
    const asked = new Set(turns.map((turn) => keyOf(named(turn))))
    return report.cells.every((cell) => cell.ok || cell.system !== OURS || !asked.has(keyOf(cell)))
  } finally {
    await servers.close()
  }
}

function named({ scenario, system, backend }: Turn): Pick<Cell, 'scenario' | 'system' | 'backend'> {
  return { scenario: scenario.name, system, backend }
}

/** A cell that broke the harness is a result too. */
function unplayed(turn: Turn, error: unknown): Cell {
  const message = error instanceof Error ? error.message : String(error)
  return {
    ...named(turn),
    enqueued: 0,
    refused: 0,
    completed: 0,
    lost: 0,
    stuck: 0,
    unexpected: 0,
    stale: null,
    duplicated: 0,
    duplicatesAllowed: 0,
    overlaps: 0,
    disorder: null,
    recoverySeconds: null,
    throughputRatio: null,
    steadySeconds: null,
    quits: 0,
    seconds: 0,
    ok: false,
    note: `not played to the end: ${message.split('\n')[0]}`,
  }
}
