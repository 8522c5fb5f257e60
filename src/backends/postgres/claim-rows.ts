// What a claim answers: the head and one row per job, as the columns of millrace.cycle.
import type { BatchId, ClaimedJob, JobId, LeaseNumber } from '../../core/job.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'

export interface CycleHead {
  /** Completions that were not simply applied: position and verdict. */
  readonly unapplied?: readonly (readonly [number, string])[]
  readonly verdicts?: readonly string[]
  readonly refused?: 'worker-dead' | 'superseded'
  readonly paused?: readonly string[]
  /** Position of a queue (from 1), its share of lower lanes, the bounds of its lanes. */
  readonly lanes?: readonly (readonly [number, number, number, number])[]
  readonly rings?: string
}

export interface ClaimedRow {
  readonly job: ClaimedJob
  /** Position in the queues asked for, from 0. */
  readonly queueIndex: number
  readonly seq: number
}

interface Extra {
  readonly tags: readonly string[] | null
  readonly meta: string | null
  readonly batch: BatchId | null
  readonly group: string | null
  readonly limitKey: string | null
  readonly parents: readonly JobId[] | null
}

const NO_TAGS: readonly string[] = []
const NO_PARENTS: readonly JobId[] = []
const NO_EXTRA: Extra = { tags: null, meta: null, batch: null, group: null, limitKey: null, parents: null }

export function parseHead(row: Row | undefined): CycleHead {
  // Written by millrace.cycle.
  return isAbsent(row?.[0]) ? {} : (JSON.parse(row[0]) as CycleHead)
}

export function parseClaimed(row: Row, queues: readonly string[]): ClaimedRow {
  const extra = isAbsent(row[15]) ? NO_EXTRA : (JSON.parse(row[15]) as Extra) // written by millrace.cycle
  const queueIndex = Number(row[3]) - 1
  return {
    queueIndex,
    seq: Number(row[4]),
    job: {
      id: row[1] as JobId, // a job id by its column
      lease: Number(row[2]) as LeaseNumber, // minted by millrace.lease_seq
      queue: queues[queueIndex] ?? '',
      name: row[8] ?? '',
      payload: row[9] ?? 'null',
      priority: Number(row[5]),
      attemptCount: Number(row[6]),
      maxAttempts: Number(row[10]),
      crashCount: Number(row[7]),
      timeoutMs: Number(row[11]),
      enqueuedAtMs: Number(row[12]),
      runAtMs: Number(row[13]),
      tags: extra.tags ?? NO_TAGS,
      meta: extra.meta,
      batch: extra.batch,
      parents: extra.parents ?? NO_PARENTS,
      group: extra.group,
      limitKey: extra.limitKey,
      rateLimited: row[14] === 't',
    },
  }
}
