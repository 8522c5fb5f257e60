// Looking for unmarked rows, which no index finds: an index would be paid for by every job. A call reads a part of the table
// and remembers where the next one goes on; what fits into one part, which is nearly always all of it, is read whole.
import type { LeaseRef } from '../../core/job.ts'
import { refsOf } from './ledger-rows.ts'
import { isAbsent } from './row.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'

/** 16 MiB, or 150 000 rows, living and dead: some milliseconds. */
export const BLOCKS = 2_048
const ALL_BLOCKS = 2 ** 31
/** Rows that one statement moves: their locks are held for some ten milliseconds. */
const STEP = 1_000

export interface UnmarkedWalk {
  unmarked(queue: string, after: number, below: number, most: number): Promise<readonly LeaseRef[]>
  requeueOld(queue: string, epoch: number, most: number): Promise<number>
}

interface OldWalk {
  readonly epoch: number
  /** The whole table has been read since the epoch began: what may still come is a late commit. */
  readonly isDone: boolean
  readonly block: number
}

export function createUnmarkedWalk(store: PostgresStore): UnmarkedWalk {
  const list = prepared(
    store,
    'ledger.unmarked',
    'select ids, leases, next_block from millrace.unmarked_runs($1, $2, $3, $4, $5, $6)',
  )
  const requeue = prepared(
    store,
    'ledger.requeueOld',
    'select moved, rings, next_block from millrace.requeue_old($1, $2, $3, $4, $5)',
  )
  const blocks = new Map<string, number>()
  const olds = new Map<string, OldWalk>()

  return {
    async unmarked(queue, after, below, most) {
      const [row] = await list(queue, after, below, most, blocks.get(queue) ?? 0, BLOCKS)
      const refs = refsOf(row?.[0], row?.[1])
      // There may be more in this part: the caller goes on behind the last lease.
      if (refs.length < most) blocks.set(queue, Number(row?.[2] ?? 0))
      return refs
    },
    async requeueOld(queue, epoch, most) {
      let all = 0
      for (let left = most; left > 0; left -= STEP) {
        const { moved, isEnd } = await step(queue, epoch, Math.min(left, STEP))
        if (moved < 0) return all === 0 ? moved : all
        all += moved
        if (isEnd) break
      }
      return all
    },
  }

  async function step(queue: string, epoch: number, most: number) {
    const known = olds.get(queue)
    const { isDone, block } = known?.epoch === epoch ? known : { isDone: false, block: 0 }
    const [row] = await requeue(queue, epoch, most, block, isDone ? BLOCKS : ALL_BLOCKS)
    const moved = Number(row?.[0] ?? -1)
    store.doorbell.ringAll(row?.[1])
    const isEnd = moved >= 0 && isAbsent(row?.[2])
    olds.set(queue, { epoch, isDone: isDone || isEnd, block: isEnd ? 0 : Number(row?.[2] ?? 0) })
    // A part that was read to its end was not full: the next pass reads on.
    return { moved, isEnd: isEnd || (isDone && moved < most) }
  }
}
