// Millrace beside each peer of the same run, metric by metric. Above 1 Millrace is better, whichever way the
// metric counts. Only what promises the same is compared: what lives in memory with nobody, a log with a log. The
// hybrid stands between two worlds: beside every peer of both, and beside Millrace without Redis.
import { OURS } from './catalogue.ts'
import type { Row } from './report.ts'
import { METRICS } from './scenario.ts'
import type { Metric } from './scenario.ts'

export interface Ratio {
  readonly scenario: string
  readonly metric: Metric
  /** `system:backend`. */
  readonly ours: string
  readonly peer: string
  /** How many times better ours is. */
  readonly factor: number
}

/** By our backend. */
const IS_COMPARED: Readonly<Record<string, (row: Row) => boolean>> = {
  postgres: isPeerOn('postgres'),
  redis: isPeerOn('redis'),
  'redis-no-aof': isPeerOn('redis-no-aof'),
  // It promises what PostgreSQL does, and has the parts of both.
  hybrid: isPeerOrOwn('postgres', 'redis'),
  'hybrid-no-aof': isPeerOrOwn('postgres', 'redis-no-aof'),
}

export function ratiosOf(rows: readonly Row[]): readonly Ratio[] {
  return rows.flatMap((own) => {
    const isCompared = IS_COMPARED[own.backend]
    if (own.system !== OURS || isCompared === undefined || METRICS[own.metric].better === 'neither') return []
    return (
      rows
        .filter(isCompared)
        .filter(({ scenario, metric }) => scenario === own.scenario && metric === own.metric)
        // A cost too small to be seen has no ratio.
        .filter((peer) => own.median > 0 && peer.median > 0)
        .map((peer) => ({
          scenario: own.scenario,
          metric: own.metric,
          ours: nameOf(own),
          peer: nameOf(peer),
          factor: METRICS[own.metric].better === 'more' ? own.median / peer.median : peer.median / own.median,
        }))
    )
  })
}

function isPeerOn(place: string): (row: Row) => boolean {
  return ({ system, backend }) => system !== OURS && backend === place
}

function isPeerOrOwn(...places: readonly string[]): (row: Row) => boolean {
  return (row) =>
    row.system === OURS ? nameOf(row) === `${OURS}:postgres` : places.some((place) => isPeerOn(place)(row))
}

function nameOf({ system, backend }: Pick<Row, 'system' | 'backend'>): string {
  return `${system}:${backend}`
}
