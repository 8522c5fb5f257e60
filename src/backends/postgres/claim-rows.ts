// What a claim answers: the head and one row per job, as the columns of millrace.cycle.
import type { BatchId, ClaimedJob, JobId, LeaseNumber } from '../../core/job.ts'
import { WordReader } from '../../store/word-reader.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'

export interface CycleHead {
  /** Completions that were not simply applied: position and verdict. */
  readonly unapplied?: readonly (readonly [number, string])[]
  readonly verdicts?: readonly string[]
  readonly refused?: 'worker-dead' | 'superseded'
  readonly paused?: readonly string[]
  /** Those that were looked at, when jobs were claimed. */
  readonly queues?: readonly QueueFacts[]
  readonly rings?: string
}

/** A queue at the moment of the claim. `position` counts from 1 in the queues asked for. */
export type QueueFacts = readonly [
  position: number,
  id: number,
  lowerLaneShare: number,
  laneHighMax: number,
  laneNormalMax: number,
  hasRate: boolean,
  hasKeyRate: boolean,
]

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

const ID_CHARS = 36
/** Priority, attempts and crashes are 16 bits each of one word. */
const WORD_PART = 65_536
const NO_TAGS: readonly string[] = []
const NO_PARENTS: readonly JobId[] = []
const NO_EXTRA: Extra = { tags: null, meta: null, batch: null, group: null, limitKey: null, parents: null }

export function parseHead(row: Row | undefined): CycleHead {
  // Written by millrace.cycle.
  return isAbsent(row?.[0]) ? {} : (JSON.parse(row[0]) as CycleHead)
}

/** The jobs of a claim: what `millrace.cycle` answers behind its head. */
export function parseClaimed(rows: readonly Row[], head: CycleHead, queues: readonly string[]): readonly ClaimedRow[] {
  const byId = new Map((head.queues ?? []).map((facts) => [facts[1], facts]))
  const claimed: ClaimedRow[] = []
  for (let index = 1; index < rows.length; index++) {
    const [facts, name, payload, extra] = rows[index]!
    claimed.push(parseJob(facts!, name!, payload!, extra, byId, queues))
  }
  return claimed
}

function parseJob(
  facts: string,
  name: string,
  payload: string,
  extraText: string | null | undefined,
  byId: ReadonlyMap<number, QueueFacts>,
  queues: readonly string[],
): ClaimedRow {
  const extra = isAbsent(extraText) ? NO_EXTRA : (JSON.parse(extraText) as Extra) // written by millrace.cycle
  const words = new WordReader(facts)
  const id = words.fixed(ID_CHARS, ' ') as JobId // a job id by its column
  const lease = words.number() as LeaseNumber // minted by millrace.lease_seq
  const [position, , , , , hasRate, hasKeyRate] = byId.get(words.number())!
  const seq = words.number()
  const counts = words.number()
  const maxAttempts = words.number()
  const timeoutMs = words.number()
  const enqueuedAtMs = words.number()
  const runAtMs = words.isOver ? enqueuedAtMs : words.number()
  if (!words.isOver) throw new Error('a line of a claim has more words than this version of Millrace knows')
  return {
    queueIndex: position - 1,
    seq,
    job: {
      id,
      lease,
      queue: queues[position - 1] ?? '',
      name,
      payload,
      priority: counts % WORD_PART,
      attemptCount: Math.floor(counts / WORD_PART) % WORD_PART,
      crashCount: Math.floor(counts / WORD_PART ** 2),
      maxAttempts,
      timeoutMs,
      enqueuedAtMs,
      runAtMs,
      tags: extra.tags ?? NO_TAGS,
      meta: extra.meta,
      batch: extra.batch,
      parents: extra.parents ?? NO_PARENTS,
      group: extra.group,
      limitKey: extra.limitKey,
      rateLimited: hasRate || (hasKeyRate && extra.limitKey !== null),
    },
  }
}
