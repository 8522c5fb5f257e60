// What the hybrid keeps in Redis for people expires by itself: the live status of jobs and the counters of tokens get their
// expiry in the script that writes them, and the protocol clears its own keys (open, reaper, reconcile). So there is nothing to
// remove. What can go wrong is that a key has lost its expiry, by a restored snapshot or a hand: it gets one again. Keys of no
// known kind, such as those of a store that was kept in Redis alone, are counted and left alone: they may hold jobs.
import type { Sweepable } from '../../store/tracking.ts'
import type { RedisLink } from '../redis/link.ts'
import { scanStep } from '../redis/scan.ts'
import { partsOf } from '../redis/tracking.ts'
import { COUNTS_KEPT_S } from './redis-eye.ts'

export interface HybridSweepParts {
  readonly link: RedisLink
  readonly prefix: string
  /** Resolves when there is a Redis to ask. */
  readonly connect: () => Promise<void>
}

const OURS = new Set(['state', 'high', 'normal', 'low', 'held', 'counts', 'probe'])
const EXPIRING = /^(?:job:[0-9a-f-]{36}|counts)$/
/** For a second and a half. */
const STANDING = /^hands:/
const NO_EXPIRY = -1
const STATUS_KEPT_S = 60 * 60

export function createHybridSweep({ link, prefix, connect }: HybridSweepParts): Sweepable['sweepTracking'] {
  return async ({ cursor, count, isDryRun }) => {
    await connect()
    const step = await scanStep(link, prefix, { cursor, count })
    const parts = step.keys.map((key) => ({ key, ...partsOf(prefix, key) }))
    const isOurs = (part: string): boolean => OURS.has(part) || EXPIRING.test(part) || STANDING.test(part)
    const foreign = parts.filter(({ tag, part }) => tag === null || !isOurs(part)).length
    const expiring = parts.filter(({ tag, part }) => tag !== null && EXPIRING.test(part))
    const ends = await Promise.all(expiring.map(({ key }) => link.command('TTL', key)))
    const lasting = expiring.filter((_, index) => Number(ends[index]) === NO_EXPIRY)
    if (!isDryRun) await Promise.all(lasting.map(({ key, part }) => link.command('EXPIRE', key, keptSeconds(part))))
    const endless = lasting.length
    return { cursor: step.cursor, counts: { seen: step.keys.length, dead: 0, endless, foreign } }
  }
}

function keptSeconds(part: string): number {
  return part === 'counts' ? COUNTS_KEPT_S : STATUS_KEPT_S
}
