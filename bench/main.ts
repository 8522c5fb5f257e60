// `npm run bench`: measures each cell several times, each time in a fresh process, and prints medians.
import { writeFileSync } from 'node:fs'
import { USAGE, parseCommand } from './args.ts'
import type { Command } from './args.ts'
import { measureInChild } from './child.ts'
import { compileChild } from './compile.ts'
import { reportOf, rowsOf, tableOf } from './report.ts'
import type { Row } from './report.ts'
import type { Measurement } from './scenario.ts'

async function run({ cells, runs, json }: Extract<Command, { kind: 'run' }>): Promise<void> {
  const script = await compileChild()
  const rows: Row[] = []
  for (const cell of cells) {
    const label = `${cell.system}:${cell.backend} ${cell.scenario}`
    const measurements: Measurement[] = []
    for (let round = 1; round <= runs; round += 1) {
      process.stderr.write(`${label} ${round}/${runs}\n`)
      try {
        measurements.push(await measureInChild(script, cell))
      } catch (error) {
        // One broken run makes a median of the others a lie: drop the cell, go on with the rest.
        console.error(`${label} failed: ${error instanceof Error ? error.message : String(error)}`)
        process.exitCode = 1
        break
      }
    }
    if (measurements.length === runs) rows.push(...rowsOf(cell, measurements))
  }
  const report = reportOf(rows)
  console.log(`\n${tableOf(report)}`)
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`)
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
    await run(command)
    break
}
