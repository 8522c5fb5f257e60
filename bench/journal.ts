// What has been measured so far, as a value. It is written after every measurement, so that a benchmark which is interrupted
// goes on from its file; at the end it is the report.
import type { Cell, Turn } from './plan.ts'
import { turnsOf } from './plan.ts'
import { rowsOf } from './report.ts'
import type { About, Report } from './report.ts'
import type { Measurement } from './scenario.ts'

export interface Journal extends Report {
  readonly plan: Plan
  readonly turns: readonly TurnRecord[]
}

export interface Plan {
  readonly cells: readonly Cell[]
}

export interface TurnRecord {
  readonly scenario: string
  readonly system: string
  readonly backend: string
  /** From 1. */
  readonly run: number
  /** With everything around the measurement. */
  readonly seconds: number
  readonly measurement?: Measurement
  /** Why there is no measurement. */
  readonly error?: string
}

export function newJournal(plan: Plan, about: About, now: string): Journal {
  return { started: now, ended: now, ...about, results: [], plan, turns: [] }
}

export function withTurn(journal: Journal, record: TurnRecord, now: string): Journal {
  const turns = [...journal.turns, record]
  return { ...journal, ended: now, turns, results: resultsOf(journal.plan, turns) }
}

/** What is still to do, in the order of the plan. */
export function turnsLeft({ plan, turns }: Pick<Journal, 'plan' | 'turns'>): readonly Turn[] {
  return turnsOf(plan.cells).filter(
    ({ cell, run }) => !turns.some((record) => isOf(cell)(record) && record.run === run),
  )
}

/** What failed is tried again. */
export function withoutFailures(journal: Journal): Journal {
  return { ...journal, turns: journal.turns.filter(({ error }) => error === undefined) }
}

/** Why a file cannot be gone on with here; empty if it can. */
export function differencesOf(then: About, now: About): readonly string[] {
  const parts = ['machine', 'node', 'versions', 'durability', 'settings', 'notes', 'method'] as const
  return parts.flatMap((part) => {
    const [before, today] = [JSON.stringify(then[part]), JSON.stringify(now[part])]
    return before === today ? [] : [`${part} was ${before} and is now ${today}`]
  })
}

/** One broken run makes a median of the others a lie: a cell with one has no rows. */
function resultsOf({ cells }: Plan, turns: readonly TurnRecord[]): Report['results'] {
  return cells.flatMap((cell) => {
    const own = turns.filter(isOf(cell))
    if (own.length === 0 || own.some(({ error }) => error !== undefined)) return []
    return rowsOf(
      cell,
      own.flatMap(({ measurement }) => measurement ?? []),
    )
  })
}

function isOf(cell: Cell): (record: TurnRecord) => boolean {
  return ({ scenario, system, backend }) =>
    scenario === cell.scenario && system === cell.system && backend === cell.backend
}
