// The file of a journal. It is replaced as a whole, so that nobody ever reads half of it.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SCENARIOS, SYSTEMS } from './catalogue.ts'
import type { Journal } from './journal.ts'

/** Ignored by git. A name by time, so that no benchmark overwrites what an earlier one took hours for. */
export function usualFile(root: string, now: string): string {
  return join(root, 'bench', 'results', `${now.slice(0, 19).replaceAll(':', '-')}.json`)
}

export function writeJournal(file: string, journal: Journal): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, `${JSON.stringify(journal, null, 2)}\n`)
  renameSync(`${file}.new`, file)
}

export function readJournal(file: string): Journal {
  const text = readFileSync(file, 'utf8')
  // What writeJournal wrote; what is needed of it is looked at here.
  const journal = JSON.parse(text) as Partial<Journal>
  if (!Array.isArray(journal.turns) || !Array.isArray(journal.plan?.cells)) {
    throw new Error(`${file} is not a file of results with which a benchmark can go on`)
  }
  for (const { scenario, system, runs } of journal.plan.cells) {
    if (!Number.isInteger(runs))
      throw new Error(`${file} is of an older benchmark: its plan does not say how many runs`)
    if (SCENARIOS.some(({ name }) => name === scenario) && Object.hasOwn(SYSTEMS, system)) continue
    throw new Error(`${file} plans ${scenario} with ${system}, which this benchmark does not know`)
  }
  return journal as Journal
}
