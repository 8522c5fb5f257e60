// Many workers whose store went away: how many connections they make to come back, and how long jobs wait then.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import type { Findings } from '../figures.ts'

export interface Reconnect {
  /** Connections that the workers had before and have afterwards, and those that their server was asked for between. */
  readonly before: number
  readonly after: number
  readonly made: number
  /** From here on nobody waits for long. */
  readonly calmMs: number
}

const CHURN_MAX = 2
/** Of fewer each try weighs more: those that came while the server was still away are a larger part. */
const MANY = 100
const FEW_CHURN_MAX = 3
const WAIT_MAX_MS = 1_000

export function reconnected(books: Books, { before, after, made, calmMs }: Reconnect): Findings {
  // A pool grows when there is something to catch up with.
  const held = Math.max(before, after)
  const churn = made / Math.max(held, 1)
  const churnMax = held < MANY ? FEW_CHURN_MAX : CHURN_MAX
  const waitMs = longestWaitMs(books, calmMs)
  const wait = waitMs === null || !Number.isFinite(waitMs) ? {} : { longestWaitSeconds: waitMs / 1000 }
  return {
    figures: { connections: held, churn, ...wait },
    broken: [
      ...(before === 0 || made === 0 ? ['no connection was lost'] : []),
      ...(churn > churnMax ? [`more than ${churnMax} times as many connections were made`] : []),
      ...(waitMs === null ? ['nobody enqueued anything afterwards'] : []),
      ...((waitMs ?? 0) > WAIT_MAX_MS ? [`a job waited for more than ${WAIT_MAX_MS / 1000} s`] : []),
    ],
  }
}

/**
 * From the call that made a job to its start, of all that were acknowledged. A job of a group waits for the one before it and
 * not for a claim. Null: there were none.
 */
function longestWaitMs(books: Books, fromMs: number): number | null {
  const runs = runsById(books.runs)
  let longest: number | null = null
  for (const [id, { atMs, group }] of books.asked) {
    if (atMs < fromMs || group !== undefined || !books.acked.has(id)) continue
    longest = Math.max(longest ?? 0, (runs.get(id)?.[0]?.startMs ?? Infinity) - atMs)
  }
  return longest
}
