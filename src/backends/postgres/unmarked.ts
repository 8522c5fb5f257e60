// Looking for unmarked rows, which no index finds: an index would be paid for by every job. A call reads a part of the table
// and remembers where the next one goes on; what fits into one part, which is nearly always all of it, is read whole.
import type { LeaseRef } from '../../core/job.ts'
import { refsOf } from './ledger-rows.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'

/** 16 MiB, or 150 000 rows, living and dead: some milliseconds. */
const BLOCKS = 2_048
const ALL_BLOCKS = 2 ** 31

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
      const known = olds.get(queue)
      const { isDone, block } = known?.epoch === epoch ? known : { isDone: false, block: 0 }
      const [row] = await requeue(queue, epoch, most, block, isDone ? BLOCKS : ALL_BLOCKS)
      const moved = Number(row?.[0] ?? -1)
      olds.set(queue, { epoch, isDone: isDone || moved === 0, block: Number(row?.[2] ?? 0) })
      store.doorbell.ringAll(row?.[1])
      return moved
    },
  }
}
