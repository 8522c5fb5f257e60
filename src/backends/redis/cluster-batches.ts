// Cluster only: what batches leave behind. A bounded walk per call, from where the last one stopped: callbacks that a
// caller died over, a cancel that was not put on the list, members that were announced and never inserted, batches whose
// time is over. What is due is said by the clock of the batch (lua/batch-tend.lua).
import type { BatchId } from '../../core/job.ts'
import { idBytes } from './ids.ts'
import { batchTag } from './keys.ts'
import type { Outbox } from './outbox.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

const LOOK = 50
const GHOSTS_MAX = 200
/** An insert does not take longer between joining and writing. */
const GHOST_AFTER_MS = 60_000

type Said = 'missing' | 'firing' | 'finished' | 'cancelled' | 'open'

export function createBatchSweep(store: RedisStore, outbox: Outbox): (olderThanMs: number) => Promise<void> {
  const look = prepared(store, 'jobs.prune', 'batchTend')
  const batch = prepared(store, 'jobs.prune', 'batchApart')
  const { link, keys } = store
  let from = 0

  async function isGhost(member: string): Promise<boolean> {
    const [queue = '', job = ''] = member.split(' ')
    return Number(await link.command('HEXISTS', keys.queue(queue, 'jobs'), idBytes(job))) === 0
  }

  async function dropGhosts(id: BatchId, silent: readonly string[]): Promise<void> {
    const isOne = await Promise.all(silent.map((member) => isGhost(member)))
    const ghosts = silent.filter((_, index) => isOne[index])
    if (ghosts.length === 0) return
    if ((await batch(batchTag(id), ['drop', id, GHOST_AFTER_MS, ...ghosts])) === 'finished') await outbox.fire(id)
  }

  async function tend(id: BatchId, olderThanMs: number): Promise<void> {
    const reply = await look(batchTag(id), [id, Math.ceil(olderThanMs), GHOST_AFTER_MS, GHOSTS_MAX])
    const [said, ...silent] = reply as readonly [Said, ...(readonly string[])] // as batch-tend.lua answers
    if (said === 'missing') {
      await link.command('SREM', keys.cancelledBatches, id)
      await link.command('ZREM', keys.batches, id)
    }
    if (said === 'firing') await outbox.fire(id)
    if (said === 'cancelled') await outbox.listCancelled(id)
    await dropGhosts(id, silent)
  }

  return async (olderThanMs) => {
    const ids = (await link.command('ZRANGE', keys.batches, from, from + LOOK - 1)) as readonly BatchId[]
    from = ids.length < LOOK ? 0 : from + LOOK
    for (const batch of ids) {
      await tend(batch, olderThanMs).catch((error: unknown) => {
        // Such as a callback that finds no room: its turn comes again, and the others have theirs now.
        store.logger.warn({ batch, error }, 'redis: a batch could not be tended yet')
      })
    }
  }
}
