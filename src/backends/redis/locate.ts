// In which queue a job is, for those who only have its id: what this process has seen, then a look into every queue
// of the registry, one pipelined command each.
import type { JobId } from '../../core/job.ts'
import { idBytes } from './ids.ts'
import type { RedisStore } from './store.ts'

/** So many commands are under way at once. */
const QUEUES_AT_ONCE = 500

/** The names of all queues, in the order in which they came to life. */
export async function queueNames({ link, keys }: RedisStore): Promise<readonly string[]> {
  return (await link.command('ZRANGE', keys.queues, 0, -1)) as readonly string[] // texts by the command
}

/** Looks for these ids everywhere; those that are nowhere are left out. */
export async function findQueues(store: RedisStore, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, string>> {
  const found = new Map<JobId, string>()
  if (ids.length === 0) return found
  const { link, keys, where } = store
  const names = await queueNames(store)
  const fields = ids.map(idBytes)
  for (let at = 0; at < names.length && found.size < ids.length; at += QUEUES_AT_ONCE) {
    const looks = names.slice(at, at + QUEUES_AT_ONCE).map(async (queue) => {
      const bodies = (await link.command('HMGET', keys.queue(queue, 'jobs'), ...fields)) as readonly (string | null)[] // one each
      for (const [index, id] of ids.entries()) {
        if (bodies[index] === null) continue
        found.set(id, queue)
        where.saw(id, queue)
      }
    })
    await Promise.all(looks)
  }
  return found
}
