// Queue records. A change is merged here and written if nobody changed the record meanwhile: scripts hold no settings.
import { MillraceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { defaultQueue } from '../../store/queue-defaults.ts'
import type { QueueChange, QueueRecord, QueueStore } from '../../store/queue-store.ts'
import type { ClusterParts } from './cluster-jobs.ts'
import { configFields, parseQueue } from './queue-fields.ts'
import { fieldsOf } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

/** Others may change it between our reading and our writing; so many times in a row they do not. */
const TRIES_MAX = 50

/** As lua/queue-configure.lua answers. */
type Changed = readonly [createdAt: string, version: number]

/** With the parts of a Cluster: on one. */
export function redisQueues(store: RedisStore, cluster: ClusterParts | undefined): QueueStore {
  const ensure = prepared(store, 'queues.ensure', 'queueEnsure')
  const configure =
    cluster === undefined
      ? prepared(store, 'queues.configure', 'queueConfigure')
      : cluster.outbox.call('queues.configure', 'queueConfigure')
  const { link, keys } = store

  async function get(name: string): Promise<QueueRecord | null> {
    const flat = (await link.command('HGETALL', keys.queue(name, 'config'))) as readonly string[]
    return flat.length === 0 ? null : parseQueue(name, fieldsOf(flat))
  }

  async function tryChange(name: string, found: QueueRecord | null, change: QueueChange): Promise<QueueRecord | null> {
    const before = found ?? { ...defaultQueue(name), paused: false, createdAtMs: 0, version: 0 }
    const after = { ...before, ...change, name }
    const relimits = change.limits !== undefined || String(before.lanes) !== String(after.lanes)
    const { createdAtMs: _, version, ...body } = after
    const head = [name, version, relimits ? 1 : 0, LIMITS.maintenanceBatchMax]
    const reply = (await configure(name, [...head, ...Object.entries(configFields(body)).flat()])) as Changed | null
    return reply === null ? null : { ...body, createdAtMs: Number(reply[0]), version: reply[1] }
  }

  return {
    ensure: (queues) =>
      Promise.all(
        queues.map(async (settings) => {
          const fields = Object.entries(configFields({ ...settings, paused: false })).flat()
          await cluster?.register([settings.name])
          const flat = (await ensure(settings.name, [settings.name, ...fields])) as readonly string[]
          return parseQueue(settings.name, fieldsOf(flat))
        }),
      ),
    async configure(name, change, expectVersion) {
      await cluster?.register([name])
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const found = await get(name)
        if (expectVersion !== undefined && expectVersion !== (found?.version ?? 0)) return null
        const changed = await tryChange(name, found, change)
        if (changed !== null) return changed
      }
      throw new MillraceError('STORE_UNAVAILABLE', `queue '${name}' is changed by others all the time; try again`)
    },
    get,
    async list() {
      const names = (await link.command('ZRANGE', keys.queues, 0, -1)) as readonly string[]
      return (await Promise.all(names.map(get))).filter((queue) => queue !== null)
    },
  }
}
