// Tokens at the start of rate-limited jobs, and what is in use.
import type { LimitStore, RateReply } from '../../store/limit-store.ts'
import { groupBy } from './cluster-insert.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

export function redisLimits(store: RedisStore): LimitStore {
  const take = prepared(store, 'limits.take', 'limitTake')
  const inspect = prepared(store, 'limits.inspect', 'limitInspect')
  return {
    async take(requests) {
      if (requests.length === 0) return []
      const replies = requests.map((): RateReply => ({ ok: true }))
      const positions = requests.map((_, index) => index)
      // On a Cluster each queue is on a node of its own.
      for (const own of groupBy(positions, (at) => (store.link.isCluster ? requests[at]!.queue : '')).values()) {
        const asked = own.flatMap((at) => [requests[at]!.queue, requests[at]!.key ?? ''])
        const waits = (await take(requests[own[0]!]!.queue, [own.length, ...asked])) as readonly number[]
        for (const [index, at] of own.entries()) {
          const waitMs = waits[index]!
          if (waitMs > 0) replies[at] = { ok: false, waitMs }
        }
      }
      return replies
    },
    async inspect(queue, key) {
      const reply = (await inspect(queue, [queue, key === undefined ? 0 : 1, key ?? ''])) as readonly string[] | null
      if (reply === null) return { slotsUsed: 0, slotsLimit: null, waiting: 0, nextTokenInMs: null }
      const [used, limit, waiting, tokenMs] = reply
      return {
        slotsUsed: Number(used),
        slotsLimit: limit === '' ? null : Number(limit),
        waiting: Number(waiting),
        nextTokenInMs: tokenMs === '' ? null : Number(tokenMs),
      }
    },
  }
}
