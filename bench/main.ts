// `npm run bench`: measures each cell several times, each time in a fresh process, and prints medians.
import { existsSync } from 'node:fs'
import { isAnswered } from '../scripts/command-line.ts'
import { ROOT } from '../scripts/compile.ts'
import { USAGE, parseCommand } from './args.ts'
import type { Command } from './args.ts'
import { SYSTEMS } from './catalogue.ts'
import { measureInChild } from './child.ts'
import { commitOf } from './commit.ts'
import { compileChild } from './compile.ts'
import { START_S, estimateS, inWords } from './estimate.ts'
import { differencesOf, newJournal, turnsLeft, withTurn, withoutFailures } from './journal.ts'
import type { Journal, TurnRecord } from './journal.ts'
import { readJournal, usualFile, writeJournal } from './journal-file.ts'
import { preparePeers } from './peers.ts'
import type { Cell, Turn } from './plan.ts'
import { aboutOf } from './report.ts'
import type { Measurement } from './scenario.ts'
import { METRICS, METRIC_NAMES } from './scenario.ts'
import { startServers } from './servers.ts'
import type { Servers } from './servers.ts'
import { digits, textOf } from './table.ts'

async function run(command: Extract<Command, { kind: 'run' | 'resume' }>): Promise<void> {
  const before = command.kind === 'resume' ? withoutFailures(readJournal(command.file)) : undefined
  const plan = command.kind === 'resume' ? before!.plan : command.plan
  const file = command.kind === 'resume' ? command.file : (command.json ?? usualFile(ROOT, nowText()))
  if (before === undefined && existsSync(file))
    throw new Error(`${file} is there already: go on with it by --resume ${file}, or give --json another name`)
  const left = turnsLeft(before ?? { plan, turns: [] })
  const minutes = inWords(START_S + estimateS(left))
  say(`${left.length} measurements, about ${minutes} on 2 cores; each is written to ${file} as it ends`)

  const peers = await preparePeers(ROOT, plan.cells.some(isOfPeer))
  const script = await compileChild()
  const servers = await startServers(new Set(plan.cells.map(({ backend }) => backend)))
  try {
    const about = aboutOf(plan.cells, { peers, commit: commitOf(ROOT), ...servers.equipment })
    const differences = before === undefined ? [] : differencesOf(before, about)
    if (differences.length > 0) throw new Error(`${file} cannot be gone on with here: ${differences.join('; ')}`)
    const measure = ({ cell }: Turn): Promise<Measurement> =>
      measureInChild(script, peers, { cell, ...servers.addressesOf(cell.backend) })
    const journal = await measureAll(before ?? newJournal(plan, about, nowText()), { file, servers, measure })
    console.log(`\n${textOf(journal)}`)
    say(`\nresults: ${file}`)
  } finally {
    await servers.stop()
  }
}

function isOfPeer({ system }: Cell): boolean {
  return SYSTEMS[system]?.package !== undefined
}

interface Measuring {
  readonly file: string
  readonly servers: Servers
  readonly measure: (turn: Turn) => Promise<Measurement>
}

/** Writes down every turn as it ends. */
async function measureAll(before: Journal, { file, servers, measure }: Measuring): Promise<Journal> {
  const turns = turnsLeft(before)
  const broken = new Set<Cell>()
  let journal = before
  for (const [index, turn] of turns.entries()) {
    const { cell, run: round } = turn
    // Its other runs would count for nothing.
    if (broken.has(cell)) continue
    const left = inWords(estimateS(turns.slice(index)))
    const label = `${cell.scenario} ${cell.system}:${cell.backend} run ${round}/${cell.runs}`
    process.stderr.write(`[${index + 1}/${turns.length}, ${left} left] ${label} `)
    const startMs = performance.now()
    const outcome = await measure(turn).then(
      (measurement) => ({ measurement }),
      (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
    )
    await servers.clean(cell.backend)
    if ('error' in outcome) {
      broken.add(cell)
      process.exitCode = 1
    }
    say('error' in outcome ? `failed: ${outcome.error}` : inShort(outcome.measurement))
    const { scenario, system, backend } = cell
    const seconds = Number(((performance.now() - startMs) / 1000).toFixed(1))
    const record: TurnRecord = { scenario, system, backend, run: round, seconds, ...outcome }
    journal = withTurn(journal, record, nowText())
    writeJournal(file, journal)
  }
  return journal
}

/** The metric that the scenario is about, which is the first in the list. */
function inShort({ values, cappedAtJobs }: Measurement): string {
  const metric = METRIC_NAMES.find((name) => values[name] !== undefined)
  if (metric === undefined) return 'nothing measured'
  const stopped = cappedAtJobs === undefined ? '' : ', stopped by time'
  return `${digits(values[metric]!)} ${METRICS[metric].unit}${stopped}`
}

/** Results go to stdout, everything else to stderr. */
function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

function nowText(): string {
  return new Date().toISOString()
}

const command = parseCommand(process.argv.slice(2))
if (!isAnswered(command, USAGE)) {
  await run(command).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  })
}
