// Cluster only: what batches leave behind. A bounded walk per call, from where the last one stopped: callbacks that a
// caller died over, members that were announced and never inserted, batches whose time is over.
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

const walks = new WeakMap<RedisStore, number>()

export async function sweepBatches(store: RedisStore, outbox: Outbox, olderThanMs: number): Promise<void> {
  const { link, keys } = store
  const from = walks.get(store) ?? 0
  const ids = (await link.command('ZRANGE', keys.batches, from, from + LOOK - 1)) as readonly BatchId[]
  walks.set(store, ids.length < LOOK ? 0 : from + LOOK)
  for (const id of ids) await tend(store, outbox, id, olderThanMs)
}

async function tend(store: RedisStore, outbox: Outbox, id: BatchId, olderThanMs: number): Promise<void> {
  const { link, keys, clock } = store
  const fields = ['created', 'finished', 'kept', 'firing'] as const
  const reply = (await link.command('HMGET', keys.batch(id), ...fields)) as readonly (string | null)[]
  const [created = null, finished = null, kept = null, firing = null] = reply
  const nowMs = clock.nowMs()
  if (created === null) await link.command('ZREM', keys.batches, id)
  else if (firing !== null) await outbox.fire(id)
  else if (finished === null && Number(created) < nowMs - GHOST_AFTER_MS) await dropGhosts(store, outbox, id)
  else if (finished !== null && Number(kept ?? 0) <= 0 && Number(finished) <= nowMs - olderThanMs) {
    await link.command('DEL', keys.batch(id), keys.batch(id, 'live'), `${keys.batch(id)}:jobs`)
    await link.command('ZREM', keys.batches, id)
  }
}

async function dropGhosts(store: RedisStore, outbox: Outbox, id: BatchId): Promise<void> {
  const { link, keys } = store
  const batch = prepared(store, 'jobs.prune', 'batchApart')
  const members = (await link.command('SRANDMEMBER', keys.batch(id, 'live'), GHOSTS_MAX)) as readonly string[]
  const ghosts: string[] = []
  for (const member of members) {
    const [queue = '', job = ''] = member.split(' ')
    if (Number(await link.command('HEXISTS', keys.queue(queue, 'jobs'), idBytes(job))) === 0) ghosts.push(member)
  }
  if (ghosts.length > 0 && (await batch(batchTag(id), ['drop', id, ...ghosts])) === 'finished') await outbox.fire(id)
}
