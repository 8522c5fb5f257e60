// `npm run chaos`: plays each cell and writes it down as it finishes. Exit 1 when a promise of ours did not hold.
import { join } from 'node:path'
import { isAnswered } from '../scripts/command-line.ts'
import { ROOT } from '../scripts/compile.ts'
import { atMostAWhile } from './deadline.ts'
import { equip } from './equipment.ts'
import { openHome } from './home.ts'
import type { Home } from './home.ts'
import { methodOf } from './method.ts'
import { USAGE, parseCommand } from './plan.ts'
import type { Command, Turn } from './plan.ts'
import { named, playAll } from './play-all.ts'
import { DATA } from './render-docs.ts'
import { differencesOf, emptyReport, goneOnWith, keyOf, readReport, withCell, writeReport } from './report.ts'
import { fileOf } from './results-file.ts'
import { startServers } from './servers.ts'
import { abandon, programOn } from './start-process.ts'
import { OURS, SYSTEM_NAMES, systemOf } from './systems/catalogue.ts'
import { HEAD, lineOf } from './table.ts'

const systems = await Promise.all(SYSTEM_NAMES.map(systemOf))
const command = parseCommand(process.argv.slice(2), systems)
if (!isAnswered(command, USAGE)) {
  const isOk = await run(command).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error)
    return false
  })
  // A cell that hung may have left something that would go on.
  process.exit(isOk ? 0 : 1)
}

type Asked = Extract<Command, { kind: 'run' }>

interface Begun {
  readonly json: string
  readonly now: string
}

/** Answers whether every promise of ours held. */
async function run(asked: Asked): Promise<boolean> {
  const now = new Date().toISOString()
  const json = fileOf(asked, ROOT, now)
  const home = await openHome()
  try {
    return await playIn(home, { json, now }, asked)
  } finally {
    const kept = await home.close()
    if (kept !== undefined) console.log(`the data of its servers and the books of its cells are kept in ${kept}`)
  }
}

async function playIn(home: Home, { json, now }: Begun, { turns, pace, times, isResumed }: Asked): Promise<boolean> {
  const used = systems.filter(({ name }) => turns.some(({ system }) => system === name))
  let servers = await startServers()
  try {
    const { node, nodeVersion, versions } = await equip(
      used.map(({ name }) => name),
      servers,
    )
    const program = await programOn(node)
    const settings = Object.fromEntries(used.map((system) => [system.name, system.settings]))
    const fresh = emptyReport({ pace, method: methodOf(times), node: nodeVersion, versions, settings }, now)
    const old = isResumed ? readReport(json) : undefined
    if (isResumed && old === undefined) process.stderr.write(`there is no ${json} yet: everything is played\n`)
    const differences = old === undefined ? [] : differencesOf(old, fresh)
    if (differences.length > 0) throw new Error(`${json} cannot be gone on with here: ${differences.join('; ')}`)
    let report = old === undefined ? fresh : goneOnWith(old, fresh)
    const known = new Set(report.cells.map(keyOf))
    const left = turns.filter((turn) => !known.has(keyOf(named(turn))) && isPlayable(turn))
    console.log(HEAD)
    servers = await playAll(left, {
      program,
      systems: used,
      times,
      known: secondsOnce(),
      servers,
      startServers,
      abandon,
      tell(cell) {
        console.log(lineOf(cell))
        report = withCell(report, cell, new Date().toISOString())
        writeReport(json, report)
        if (!cell.ok && cell.system === OURS) home.keep()
      },
    })
    console.log(`written to ${json}`)
    const own = new Set(turns.map((turn) => keyOf(named(turn))))
    return report.cells.every((cell) => cell.ok || cell.system !== OURS || !own.has(keyOf(cell)))
  } finally {
    await atMostAWhile(servers.close())
  }
}

/** Of each cell in the committed results. They only tell how long it may take: without them it is guessed. */
function secondsOnce(): ReadonlyMap<string, number> {
  try {
    return new Map(readReport(join(ROOT, DATA))?.cells.map((cell) => [keyOf(cell), cell.seconds]))
  } catch {
    return new Map()
  }
}

function isPlayable(turn: Turn): boolean {
  const why = turn.scenario.isMissing?.()
  if (why !== undefined) process.stderr.write(`${keyOf(named(turn))} is not played: ${why}\n`)
  return why === undefined
}
