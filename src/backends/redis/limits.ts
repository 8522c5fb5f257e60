// Tokens at the start of rate-limited jobs, and what is in use.
import type { LimitStore } from '../../store/limit-store.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

export function redisLimits(store: RedisStore): LimitStore {
  const take = prepared(store, 'limits.take', 'limitTake')
  const inspect = prepared(store, 'limits.inspect', 'limitInspect')
  return {
    async take(requests) {
      if (requests.length === 0) return []
      const asked = requests.flatMap(({ queue, key }) => [queue, key ?? ''])
      const waits = (await take(requests[0]!.queue, [requests.length, ...asked])) as readonly number[]
      return waits.map((waitMs) => (waitMs === 0 ? { ok: true } : { ok: false, waitMs }))
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
