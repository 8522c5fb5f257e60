// The books of a cell, kept in files outside every store: what the producers asked for and were told, which handlers
// started and ended. One line per entry, each appended by one write, so that a killed process leaves whole lines.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

export interface BookFiles {
  /**
   * `asked <job> <ms> [<group>]` before an enqueue is sent, `due <job> <ms>` where it is for later, `acked <job> <ms>`
   * once it was acknowledged. The same of a batch: `batch-asked <name> <ms> <size>`, `batch-acked <name> <ms>`.
   * `withheld <number> <ms>`: so many jobs were due and not asked for, since too many calls had no answer.
   */
  readonly ledger: string
  /** `start <job> <pid> <ms>` and `end <job> <pid> <ms> <ms of its start>` of every handler. */
  readonly runs: string
}

export interface Books {
  /** In the order of the book. */
  readonly asked: ReadonlyMap<string, Asked>
  /** When each was acknowledged. */
  readonly acked: ReadonlyMap<string, number>
  /** Not before these moments. */
  readonly due: ReadonlyMap<string, number>
  /** Due, and never asked for: less was offered than the rate says. */
  readonly withheld: number
  /** By name. */
  readonly batches: ReadonlyMap<string, AskedBatch>
  /** In the order of their starts. */
  readonly runs: readonly Run[]
}

export interface Asked {
  readonly atMs: number
  readonly group?: string
}

export interface AskedBatch {
  readonly size: number
  readonly isAcked: boolean
}

export interface Run {
  readonly id: string
  readonly pid: number
  readonly startMs: number
  /** Absent: the handler never came to its end. */
  readonly endMs?: number
}

export function writeLine(path: string, ...words: readonly (string | number)[]): void {
  appendFileSync(path, `${words.join(' ')}\n`)
}

/** Many at once. */
export function writeLines(path: string, lines: readonly (readonly (string | number)[])[]): void {
  appendFileSync(path, lines.map((words) => `${words.join(' ')}\n`).join(''))
}

/** Makes a batch, and writes down that it was asked for and, if so, that it was acknowledged. */
export async function inBooks(
  ledger: string,
  { name, size }: { readonly name: string; readonly size: number },
  make: () => Promise<void>,
): Promise<void> {
  writeLine(ledger, 'batch-asked', name, Date.now(), size)
  await make()
  writeLine(ledger, 'batch-acked', name, Date.now())
}

export function readBooks(files: BookFiles): Books {
  return booksOf(linesOf(files.ledger), linesOf(files.runs))
}

export function booksOf(ledger: readonly string[], runs: readonly string[]): Books {
  const asked = new Map<string, Asked>()
  const acked = new Map<string, number>()
  const due = new Map<string, number>()
  const batches = new Map<string, AskedBatch>()
  let withheld = 0
  for (const line of ledger) {
    const [kind, id = '', atMs, more] = line.split(' ')
    if (kind === 'asked') asked.set(id, { atMs: Number(atMs), ...(more !== undefined && { group: more }) })
    else if (kind === 'withheld') withheld += Number(id)
    else if (kind === 'batch-asked') batches.set(id, { size: Number(more), isAcked: false })
    else if (kind === 'batch-acked') batches.set(id, { ...batches.get(id)!, isAcked: true })
    else (kind === 'due' ? due : acked).set(id, Number(atMs))
  }
  return { asked, acked, due, withheld, batches, runs: runsOf(runs) }
}

function runsOf(lines: readonly string[]): readonly Run[] {
  const runs: OpenRun[] = []
  // A process may have two runs of one job: one that has lost it, and the next.
  const open = new Map<string, OpenRun[]>()
  for (const line of lines) {
    const [kind, id = '', pid = '', atMs, startMs] = line.split(' ')
    const key = `${id} ${pid}`
    const under = open.get(key) ?? []
    if (kind === 'start') {
      const run = { id, pid: Number(pid), startMs: Number(atMs) }
      runs.push(run)
      open.set(key, [...under, run])
    } else {
      const run = under.find((one) => startMs === undefined || one.startMs === Number(startMs))
      if (run !== undefined) run.endMs = Number(atMs)
      open.set(
        key,
        under.filter((one) => one !== run),
      )
    }
  }
  return runs
}

interface OpenRun {
  readonly id: string
  readonly pid: number
  readonly startMs: number
  endMs?: number
}

/** What a handler answers, so that the record of a system shows whose result it has kept. */
export function resultOf({ pid, startMs }: Pick<Run, 'pid' | 'startMs'>): string {
  return `${pid} ${startMs}`
}

/** The runs of each job, in order. */
export function runsById(runs: readonly Run[]): ReadonlyMap<string, readonly Run[]> {
  const found = new Map<string, Run[]>()
  for (const run of runs) {
    const of = found.get(run.id)
    if (of === undefined) found.set(run.id, [run])
    else of.push(run)
  }
  return found
}

function linesOf(path: string): readonly string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}
