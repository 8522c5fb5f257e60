// Millrace beside each peer of the same run, metric by metric. Above 1 Millrace is better, whichever way the
// metric counts. What lives in memory alone is not compared with what survives a crash.
import type { Row } from './report.ts'
import { METRICS } from './scenario.ts'
import type { Metric } from './scenario.ts'

const OURS = 'millrace'
const INCOMPARABLE = 'memory'

export interface Ratio {
  readonly scenario: string
  readonly metric: Metric
  /** `system:backend`. */
  readonly ours: string
  readonly peer: string
  /** How many times better ours is. */
  readonly factor: number
}

export function ratiosOf(rows: readonly Row[]): readonly Ratio[] {
  const comparable = rows.filter(({ backend }) => backend !== INCOMPARABLE)
  const ours = comparable.filter(({ system }) => system === OURS)
  const peers = comparable.filter(({ system }) => system !== OURS)
  return ours.flatMap((own) =>
    peers
      .filter(({ scenario, metric }) => scenario === own.scenario && metric === own.metric)
      .map((peer) => ({
        scenario: own.scenario,
        metric: own.metric,
        ours: nameOf(own),
        peer: nameOf(peer),
        factor: METRICS[own.metric].better === 'more' ? own.median / peer.median : peer.median / own.median,
      })),
  )
}

function nameOf({ system, backend }: Row): string {
  return `${system}:${backend}`
}
