// What the ledger of the hybrid reads and sends: rows of `dispatch` as JSON, leases as parallel arrays.
import type { JobId, LeaseNumber, LeaseRef } from '../../core/job.ts'
import type { DispatchNews, DispatchRow } from './ledger-port.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'
import { bigintArray, uuidArray } from './wire.ts'

/** As millrace.dispatch_news writes it. */
export interface NewsJson {
  readonly epoch: number
  readonly changed: boolean
  readonly rows: readonly DispatchJson[]
}

type DispatchJson = readonly [
  queue: string,
  mode: 'token' | 'ledger',
  epoch: number,
  birth: string | null,
  redisId: string,
  firstLease: number,
  paused: boolean,
  version: number,
  laneHighMax: number,
  laneNormalMax: number,
  lowerLaneShare: number,
  defaultPriority: number,
]

export const NO_NEWS: DispatchNews = { epoch: 0, rows: [], serverChanged: false }

/** Null where the one row of `ledger` is gone: then no server is known. */
export function newsOf(json: NewsJson | null): DispatchNews {
  if (json === null) return { epoch: 0, rows: [], serverChanged: true }
  return { epoch: json.epoch, rows: json.rows.map(dispatchRow), serverChanged: json.changed }
}

export function parseNews(text: string | null | undefined): DispatchNews {
  return newsOf(isAbsent(text) ? null : (JSON.parse(text) as NewsJson)) // written by millrace.dispatch_news
}

function dispatchRow(json: DispatchJson): DispatchRow {
  const [queue, mode, epoch, birth, redisId, firstLease, paused, configVersion, high, normal, share, priority] = json
  return {
    queue,
    mode,
    epoch,
    birth,
    redisId,
    firstLease,
    paused,
    configVersion,
    lanes: [high, normal],
    lowerLaneShare: share,
    defaultPriority: priority,
  }
}

/** Two parameters. In the order of ids: rows are locked in that order everywhere. */
export function refArrays(refs: readonly LeaseRef[]): readonly [Buffer, Buffer] {
  return [uuidArray(refs.map(({ jobId }) => jobId)), bigintArray(refs.map(({ lease }) => lease))]
}

export function inOrder<Ref extends LeaseRef>(refs: readonly Ref[]): readonly Ref[] {
  return refs.toSorted((a, b) => (a.jobId < b.jobId ? -1 : 1))
}

/** An array of numbers or uuids as SQL writes it: `{1,2}`; null: none. */
export function wordsOf(text: string | null | undefined): readonly string[] {
  return isAbsent(text) || text === '{}' ? [] : text.slice(1, -1).split(',')
}

/** From two columns that are arrays. */
export function refsOf(ids: string | null | undefined, leases: string | null | undefined): readonly LeaseRef[] {
  const numbers = wordsOf(leases)
  // A job id and a lease by their columns.
  return wordsOf(ids).map((id, index) => ({ jobId: id as JobId, lease: Number(numbers[index]) as LeaseNumber }))
}

/** From two columns of one row each. */
export function refOf(row: Row): LeaseRef {
  return { jobId: row[0] as JobId, lease: Number(row[1]) as LeaseNumber } // by their columns
}
