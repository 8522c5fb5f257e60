// What a worker may need for a backlog, whatever its length, and how much of it the hybrid may have in Redis.
import type { Findings } from '../figures.ts'

export interface Crammed {
  /** Of each worker, in bytes: the most it had before, and with the backlog. */
  readonly rssBefore: readonly number[]
  readonly rssAfter: readonly number[]
  /** Tokens in Redis, as often as somebody looked. Absent: the store has none. */
  readonly tokens?: { readonly seen: readonly number[]; readonly max: number }
}

const MIB = 2 ** 20
/** What a worker has at hand, twice over: one being worked on, one being collected as garbage. */
const GROWTH_MAX_MIB = 128

export function bounded({ rssBefore, rssAfter, tokens }: Crammed): Findings {
  const growthMiB = Math.max(...rssAfter.map((bytes, no) => (bytes - (rssBefore[no] ?? 0)) / MIB))
  const most = tokens === undefined ? undefined : Math.max(0, ...tokens.seen)
  return {
    figures: { rssGrowthMiB: growthMiB, ...(most !== undefined && { windowMost: most }) },
    broken: [
      ...(growthMiB > GROWTH_MAX_MIB ? [`a worker grew by ${Math.round(growthMiB)} MiB`] : []),
      ...(most === 0 ? ['no token was seen in Redis'] : []),
      ...(tokens !== undefined && most! > tokens.max ? [`${most} tokens in Redis, ${tokens.max} are allowed`] : []),
    ],
  }
}
