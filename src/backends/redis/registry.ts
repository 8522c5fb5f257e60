// Cluster only: queues are registered before their first job, because a script cannot reach the registry. A name whose
// queue never came to be does no harm.
import type { RedisStore } from './store.ts'

export function createRegistry({ link, keys }: RedisStore): (queues: Iterable<string>) => Promise<void> {
  const known = new Set<string>()
  return async (queues) => {
    for (const queue of queues) {
      if (known.has(queue)) continue
      const count = Number(await link.command('ZCARD', keys.queues))
      await link.command('ZADD', keys.queues, 'NX', count + 1, queue)
      known.add(queue)
    }
  }
}
