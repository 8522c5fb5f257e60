// What Millrace must reach beside others in one and the same run, and whether it did: no-op jobs, and a second process.
import type { Row } from '../report.ts'
import { displayName, nameOf, shown } from './names.ts'

interface Floor {
  readonly ours: string
  readonly scenario: string
  /** Compared with this; the scenario of the other, where it is not the same. */
  readonly other: string
  readonly otherScenario?: string
  readonly least: number
}

export interface Standing extends Floor {
  readonly factor: number
  readonly holds: boolean
}

const [POSTGRES, REDIS, HYBRID] = ['millrace:postgres', 'millrace:redis', 'millrace:hybrid']
const [ONE, TWO] = ['drain-100', 'drain-100x2']
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

/** Those whose both sides were measured. */
export function standingsOf(rows: readonly Row[]): readonly Standing[] {
  const rateOf = (target: string, of: string): number | undefined =>
    rows.find((row) => nameOf(row) === target && row.scenario === of && row.metric === 'jobs_per_s')?.median
  return FLOORS.flatMap((floor) => {
    const own = rateOf(floor.ours, floor.scenario)
    const other = rateOf(floor.other, floor.otherScenario ?? floor.scenario)
    if (own === undefined || other === undefined) return []
    const factor = own / other
    return [{ ...floor, factor, holds: factor >= floor.least }]
  })
}

export function wordsOf({ ours, scenario, other, otherScenario, least, factor, holds }: Standing): readonly string[] {
  const beside = otherScenario === undefined ? displayName(other) : `itself in ${otherScenario}`
  return [scenario, displayName(ours), beside, `${shown(least)} ×`, `${shown(factor)} ×`, holds ? 'yes' : '**no**']
}
