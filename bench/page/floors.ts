// What Millrace must reach beside others in one and the same run, and whether it did: no-op jobs, and a second process.
import type { Row } from '../report.ts'
import { UNSET_SCENARIO } from '../window.ts'
import { displayName, nameOf, shown, spreadOf } from './names.ts'

interface Floor {
  readonly ours: string
  readonly scenario: string
  /** Compared with this; the scenario of the other, where it is not the same. */
  readonly other: string
  readonly otherScenario?: string
  readonly least: number
}

export interface Standing extends Floor {
  readonly own: Row
  readonly beside: Row
  readonly factor: number
  readonly holds: boolean
  /** Whether the least of one side beside the most of the other says the same. */
  readonly isClear: boolean
}

const [POSTGRES, REDIS, HYBRID] = ['millrace:postgres', 'millrace:redis', 'millrace:hybrid'] as const
const [ONE, TWO] = ['drain-100', 'drain-100x2'] as const
const [SLOW, SLOW_TWO] = ['handlers-10ms', 'handlers-10msx2']

export const FLOORS: readonly Floor[] = [
  { ours: POSTGRES, scenario: ONE, other: 'graphile-worker-tuned:postgres', least: 1.5 },
  { ours: POSTGRES, scenario: ONE, other: 'pg-boss:postgres', least: 1 },
  { ours: REDIS, scenario: ONE, other: 'bullmq:redis', least: 3 },
  { ours: REDIS, scenario: ONE, other: 'bee-queue:redis', least: 1 },
  { ours: HYBRID, scenario: ONE, other: 'bullmq:redis', least: 3 },
  { ours: HYBRID, scenario: ONE, other: POSTGRES, least: 1 },
  { ours: POSTGRES, scenario: TWO, other: POSTGRES, otherScenario: ONE, least: 1 },
  { ours: HYBRID, scenario: TWO, other: HYBRID, otherScenario: ONE, least: 1 },
  { ours: POSTGRES, scenario: SLOW_TWO, other: POSTGRES, otherScenario: SLOW, least: 1.8 },
  { ours: REDIS, scenario: SLOW_TWO, other: REDIS, otherScenario: SLOW, least: 1.8 },
  { ours: HYBRID, scenario: SLOW_TWO, other: HYBRID, otherScenario: SLOW, least: 1.8 },
]

export function rateOf(rows: readonly Row[], target: string, scenario: string): Row | undefined {
  return rows.find((row) => nameOf(row) === target && row.scenario === scenario && row.metric === 'jobs_per_s')
}

/** Those whose both sides were measured. */
export function standingsOf(rows: readonly Row[]): readonly Standing[] {
  return FLOORS.flatMap((floor) => {
    const own = rateOf(rows, floor.ours, floor.scenario)
    const beside = rateOf(rows, floor.other, floor.otherScenario ?? floor.scenario)
    if (own === undefined || beside === undefined) return []
    const factor = own.median / beside.median
    const holds = factor >= floor.least
    const isClear = holds ? own.min / beside.max >= floor.least : own.max / beside.min < floor.least
    return [{ ...floor, own, beside, factor, holds, isClear }]
  })
}

/** Out of the box, where a backlog is larger than the window of the hybrid. Undefined: not measured. */
export function unsetOf(rows: readonly Row[]): { readonly own: Row; readonly factor: number } | undefined {
  const own = rateOf(rows, HYBRID, UNSET_SCENARIO)
  const beside = rateOf(rows, POSTGRES, ONE)
  return own === undefined || beside === undefined ? undefined : { own, factor: own.median / beside.median }
}

export function wordsOf(standing: Standing): readonly string[] {
  const { ours, scenario, other, otherScenario, least, own, beside, factor, holds, isClear } = standing
  return [
    scenario,
    displayName(ours),
    spreadOf(own),
    otherScenario === undefined ? displayName(other) : `itself in ${otherScenario}`,
    spreadOf(beside),
    `${shown(least)} ×`,
    `${shown(factor)} ×`,
    `${holds ? 'yes' : '**no**'}${isClear ? '' : ' (the runs overlap)'}`,
  ]
}
