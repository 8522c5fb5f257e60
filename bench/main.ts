// `npm run bench`: measures each cell several times, each time in a fresh process, and prints medians.
import { writeFileSync } from 'node:fs'
import { ROOT } from '../scripts/compile.ts'
import { USAGE, parseCommand } from './args.ts'
import type { Command } from './args.ts'
import { measureInChild } from './child.ts'
import { compileChild } from './compile.ts'
import { preparePeers } from './peers.ts'
import { turnsOf } from './plan.ts'
import type { Cell, Turn } from './plan.ts'
import { reportOf, rowsOf } from './report.ts'
import type { Measurement } from './scenario.ts'
import { METRICS, METRIC_NAMES } from './scenario.ts'
import { startServers } from './servers.ts'
import type { Servers } from './servers.ts'
import { digits, textOf } from './table.ts'

async function run({ cells, runs, json }: Extract<Command, { kind: 'run' }>): Promise<void> {
  const peers = await preparePeers(ROOT)
  const script = await compileChild()
  const servers = await startServers(new Set(cells.map(({ backend }) => backend)))
  try {
    const measurements = await measureAll(turnsOf(cells, runs), runs, servers, ({ cell }) =>
      measureInChild(script, peers, { cell, ...servers.addressesOf(cell.backend) }),
    )
    const report = reportOf(
      [...measurements].flatMap(([cell, each]) => rowsOf(cell, each)),
      { peers, ...servers.equipment },
    )
    console.log(`\n${textOf(report)}`)
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`)
  } finally {
    await servers.stop()
  }
}

/** The cells that were measured as often as asked, in the order of the plan. */
async function measureAll(
  turns: readonly Turn[],
  runs: number,
  servers: Servers,
  measure: (turn: Turn) => Promise<Measurement>,
): Promise<ReadonlyMap<Cell, readonly Measurement[]>> {
  const done = new Map<Cell, Measurement[]>(turns.map(({ cell }) => [cell, []]))
  for (const [index, turn] of turns.entries()) {
    const { cell, run: round } = turn
    const measurements = done.get(cell)
    if (measurements === undefined) continue
    const label = `${cell.scenario} ${cell.system}:${cell.backend} run ${round}/${runs}`
    process.stderr.write(`[${index + 1}/${turns.length}] ${label} `)
    try {
      const measurement = await measure(turn)
      measurements.push(measurement)
      process.stderr.write(`${inShort(measurement)}\n`)
    } catch (error) {
      // One broken run makes a median of the others a lie: drop the cell, go on with the rest.
      process.stderr.write(`failed: ${error instanceof Error ? error.message : String(error)}\n`)
      done.delete(cell)
      process.exitCode = 1
    }
    await servers.clean(cell.backend)
  }
  return done
}

/** The metric that the scenario is about, which is the first in the list. */
function inShort({ values, cappedAtJobs }: Measurement): string {
  const metric = METRIC_NAMES.find((name) => values[name] !== undefined)
  if (metric === undefined) return 'nothing measured'
  const stopped = cappedAtJobs === undefined ? '' : ', stopped by time'
  return `${digits(values[metric]!)} ${METRICS[metric].unit}${stopped}`
}

const command = parseCommand(process.argv.slice(2))
switch (command.kind) {
  case 'help':
    console.log(USAGE)
    break
  case 'wrong':
    console.error(`${command.message}\n\n${USAGE}`)
    process.exitCode = 2
    break
  case 'run':
    await run(command).catch((error: unknown) => {
      console.error(error instanceof Error ? error.message : error)
      process.exitCode = 1
    })
    break
}
