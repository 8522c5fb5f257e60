// How many tokens a lane may hold. `window` bounds one lane, `windowTotal` all lanes of all queues together, so that a backlog
// in many queues costs Redis no more memory than one in a few. Half of it is the guarantee, the same for every lane, so that
// nobody waits for a lane that is not worked on; the rest is lent to lanes whose rows wait in the ledger.
//
// Producers know how many queues there are, and fill no more than the guarantee. The relay asks every queue how full it is,
// and lends. So the sum stays within the total whoever is there; two relays at once may lend twice, for a moment.
import { LIMITS } from '../../core/limits.ts'
import type { PushReply } from './ports.ts'

export interface WindowTerms {
  /** Tokens of one lane. */
  readonly window: number
  /** Tokens of all lanes. */
  readonly total: number
  /** Queues that have tokens at all. */
  readonly queues: number
}

export type Rooms = readonly [number, number, number]

const LANES = 3

/** What any lane may hold without asking; at least one token, while there is a window at all. */
export function guaranteeOf({ window, total, queues }: WindowTerms): number {
  const share = Math.floor(total / 2 / (LANES * Math.max(queues, 1)))
  return Math.min(window, total > 0 ? Math.max(share, 1) : 0)
}

/**
 * How many tokens the relay may bring to each lane of a queue now. Each lane has its own room: an empty one above must not
 * take it from those below. `all` is what is known of all queues, this one included.
 */
export function roomsOf(terms: WindowTerms, own: PushReply, all: () => Iterable<PushReply>): Rooms {
  if (own.isFull) return [0, 0, 0]
  const guarantee = guaranteeOf(terms)
  const { window } = terms
  // Without a backlog nothing is asked for beyond the guarantee; the first rows that remain are told with the next push.
  const loan = own.backlog.some(Boolean) && guarantee < window ? loanOf(terms, guarantee, all()) : { each: 0, left: 0 }
  let { left } = loan
  const roomOf = (depth: number, hasBacklog: boolean): number => {
    const mayHold = hasBacklog ? Math.min(window, guarantee + loan.each) : guarantee
    const most = Math.max(guarantee, Math.min(mayHold, Math.max(depth, guarantee) + left))
    const room = Math.max(Math.min(most - depth, LIMITS.maintenanceBatchMax), 0)
    left -= Math.max(room - Math.max(guarantee - depth, 0), 0)
    return room
  }
  const [high, normal, low] = own.depths
  return [roomOf(high, own.backlog[0]), roomOf(normal, own.backlog[1]), roomOf(low, own.backlog[2])]
}

/** How much each lane with a backlog may borrow, and what is not lent yet. */
function loanOf({ total, queues }: WindowTerms, guarantee: number, all: Iterable<PushReply>) {
  const pool = Math.max(total - LANES * queues * guarantee, 0)
  let lent = 0
  let borrowers = 0
  for (const { depths, backlog } of all) {
    for (const [lane, depth] of depths.entries()) {
      lent += Math.max(depth - guarantee, 0)
      if (backlog[lane]) borrowers += 1
    }
  }
  return { each: Math.floor(pool / Math.max(borrowers, 1)), left: Math.max(pool - lent, 0) }
}
