// Reconcile: finds rows that PostgreSQL says are dispatched and Redis does not know. It looks only at leases that were minted
// at least two passes ago, so that their push has arrived or never will: `audit` raises the floor of the queue to that mark,
// and a lease below the floor that is absent now can never appear later. Rows from before the epoch, and all in mode ledger,
// need only the barrier. It never pushes; what comes back is ready, and the relay brings it.
import { isPlanted } from '../../core/planted.ts'
import { eachQueue } from './each-queue.ts'
import type { Hybrid } from './hybrid.ts'
import type { DispatchRow, EpochTag } from './ports.ts'
import { buryDead } from './reaper.ts'
import { fieldOf, refOf } from './token-text.ts'

const PAGE = 1_000
const PAGES_MAX = 5
/** Of one queue in one pass; where there are more the next pass comes soon. */
const OLD_MAX = PAGE * PAGES_MAX
/** Where nothing is to be asked about, the floor rises this often, so that Redis forgets who pushed long ago. */
const FLOOR_MS = 10_000

interface Mark {
  readonly atMs: number
  readonly next: number
}

/** What one process remembers between passes. */
export class Reconciler {
  readonly #hybrid: Hybrid
  readonly #marks: Mark[] = []
  readonly #cursors = new Map<string, number>()
  readonly #floorsAtMs = new Map<string, number>()
  #server = ''

  constructor(hybrid: Hybrid) {
    this.#hybrid = hybrid
  }

  /** Answers whether more waits than one pass may move. Throws when an outcome is unknown; the next pass begins again. */
  async pass(queues: Iterable<DispatchRow>): Promise<boolean> {
    const { ledger, runtime, times, watch } = this.#hybrid
    const { next, server } = await ledger.leaseMark()
    if (server !== this.#server) this.#marks.length = 0
    this.#server = server
    const nowMs = runtime.clock.monoMs()
    this.#marks.push({ atMs: nowMs, next })
    const aged = this.#marks.findLast(({ atMs }) => nowMs - atMs >= 2 * times.reconcileMs)
    const below = aged?.next ?? 0
    while (this.#marks.length > 1 && nowMs - this.#marks[1]!.atMs >= 2 * times.reconcileMs) this.#marks.shift()
    const rows = [...queues]
    let hasMore = false
    // What needs PostgreSQL alone comes first: a Redis that fails is no reason to leave it.
    await eachQueue(runtime.logger, 'reconcile', rows, async ({ queue, epoch }) => {
      const moved = Math.max(await ledger.requeueOld(queue, epoch, OLD_MAX), 0)
      this.#hybrid.tally.add(queue, 'requeued', moved)
      hasMore ||= moved >= OLD_MAX
    })
    const asked = rows.filter(({ mode, queue, firstLease }) => {
      return mode === 'token' && below > firstLease && !watch.isOpen(queue)
    })
    await eachQueue(runtime.logger, 'reconcile', asked, async (row) => {
      this.#hybrid.tally.add(row.queue, 'requeued', await this.#audit(row, below))
    })
    runtime.failpoint('hybrid.reconciled')
    return hasMore
  }

  async #audit({ queue, epoch, firstLease }: DispatchRow, below: number): Promise<number> {
    const { ledger, calls, view } = this.#hybrid
    const tag = view.tag(queue)
    if (tag === null) return 0
    let moved = 0
    for (let page = 0; page < PAGES_MAX; page++) {
      const after = Math.max(this.#cursors.get(queue) ?? 0, firstLease - 1)
      const refs = await ledger.unmarked(queue, after, below, PAGE)
      // The next pass goes on behind the last one, or begins again.
      this.#cursors.set(queue, refs.length < PAGE ? 0 : refs.at(-1)!.lease)
      if (refs.length === 0) {
        await this.#raiseFloor(queue, tag, below)
        return moved
      }
      const floor = isPlanted('hybrid-audit-without-floor') ? 0 : below
      const reply = await calls.gated(queue, tag, (race) => race.audit(queue, tag, floor, refs.map(fieldOf)))
      if (reply === undefined) return moved
      // Also holders that Redis has no other note of: a take that landed after its session was buried.
      await buryDead(this.#hybrid, queue, tag, reply.sessions)
      if (reply.absent.length > 0) moved += await ledger.requeue(queue, epoch, reply.absent.map(refOf))
      if (refs.length < PAGE) return moved
    }
    return moved
  }

  async #raiseFloor(queue: string, tag: EpochTag, below: number): Promise<void> {
    const { calls, runtime } = this.#hybrid
    const nowMs = runtime.clock.monoMs()
    if (nowMs - (this.#floorsAtMs.get(queue) ?? -Infinity) < FLOOR_MS) return
    this.#floorsAtMs.set(queue, nowMs)
    const floor = isPlanted('hybrid-audit-without-floor') ? 0 : below
    await calls.gated(queue, tag, (race) => race.audit(queue, tag, floor, []))
  }
}
