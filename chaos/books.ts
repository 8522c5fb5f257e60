// The books of a cell, kept in files outside every store: what the producers asked for and were told, which handlers
// started and ended. One line per entry, each appended by one write, so that a killed process leaves whole lines.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

export interface BookFiles {
  /** `asked <job> <ms> [<group>]` before an enqueue is sent, `acked <job> <ms>` once it was acknowledged. */
  readonly ledger: string
  /** `start <job> <pid> <ms>` and `end <job> <pid> <ms>` of every handler. */
  readonly runs: string
}

export interface Books {
  /** In the order of the book. */
  readonly asked: ReadonlyMap<string, Asked>
  /** When each was acknowledged. */
  readonly acked: ReadonlyMap<string, number>
  /** In the order of their starts. */
  readonly runs: readonly Run[]
}

export interface Asked {
  readonly atMs: number
  readonly group?: string
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

export function readBooks(files: BookFiles): Books {
  return booksOf(linesOf(files.ledger), linesOf(files.runs))
}

export function booksOf(ledger: readonly string[], runs: readonly string[]): Books {
  const asked = new Map<string, Asked>()
  const acked = new Map<string, number>()
  for (const line of ledger) {
    const [kind, id = '', atMs, group] = line.split(' ')
    if (kind === 'asked') asked.set(id, { atMs: Number(atMs), ...(group !== undefined && { group }) })
    else acked.set(id, Number(atMs))
  }
  return { asked, acked, runs: runsOf(runs) }
}

function runsOf(lines: readonly string[]): readonly Run[] {
  const runs: { id: string; pid: number; startMs: number; endMs?: number }[] = []
  const open = new Map<string, (typeof runs)[number]>()
  for (const line of lines) {
    const [kind, id = '', pid = '', atMs] = line.split(' ')
    const key = `${id} ${pid}`
    if (kind === 'start') {
      const run = { id, pid: Number(pid), startMs: Number(atMs) }
      runs.push(run)
      open.set(key, run)
    } else {
      const run = open.get(key)
      if (run !== undefined) run.endMs = Number(atMs)
      open.delete(key)
    }
  }
  return runs
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
