// Cluster only: delivering what a change of a job does on other nodes (lua/_outbox.lua). Messages are carried one by one
// and taken off the list afterwards, so whoever dies leaves them for the next; every receiver takes a message twice for once.
import { callbacksDue } from '../../core/batch.ts'
import type { BatchId, JobId, NewJob } from '../../core/job.ts'
import { batchRecord } from './batch-fields.ts'
import { idBytes } from './ids.ts'
import { batchTag } from './keys.ts'
import { findQueues } from './locate.ts'
import { prepared, scriptOf } from './store.ts'
import type { RedisStore, ScriptName } from './store.ts'
import type { RedisValue } from './link.ts'

export interface Outbox {
  /** Calls a script that may leave messages, and delivers them. */
  call(what: string, name: ScriptName): (queue: string, args: readonly RedisValue[]) => Promise<unknown>
  /** The same for a call that delivers later, together with others. */
  callOnly(what: string, name: ScriptName): (queue: string, args: readonly RedisValue[]) => Promise<unknown>
  /** Never throws: what it is about has been applied. Messages that cannot be carried now wait for maintenance. */
  deliver(queue: string): Promise<void>
  /** Inserts the callbacks of a finished batch. */
  fire(batch: BatchId): Promise<void>
  /** The live jobs of a cancelled batch are listed by `due` from now on. */
  listCancelled(batch: BatchId): Promise<void>
}

const PAGE = 100
const PAGES_MAX = 100
/** One message that cannot be carried does not hold up those behind it; after so many it is something bigger. */
const FAILED_MAX = 10

export function createOutbox(store: RedisStore, insert: (jobs: readonly NewJob[]) => Promise<unknown>): Outbox {
  const { link, keys, where } = store
  const linkKid = prepared(store, 'jobs.insert', 'kidLink')
  const tellKid = prepared(store, 'jobs.apply', 'kidTold')
  const batch = prepared(store, 'jobs.apply', 'batchApart')
  const small = scriptOf(store, 'jobs.apply', 'smallWrite')
  const stuck = new Set<string>()

  /** One command that is done at the limit of memory too. */
  async function write(key: string, command: string, ...values: readonly string[]): Promise<void> {
    await link.run(small, [key], [keys.prefix, command, ...values])
  }

  async function placeOf(id: string, guess: string): Promise<string> {
    const known = guess === '' ? where.of(id) : guess
    if (known !== '' && Number(await link.command('HEXISTS', keys.queue(known, 'jobs'), idBytes(id))) === 1)
      return known
    return (await findQueues(store, [id as JobId])).get(id as JobId) ?? '' // as inserted
  }

  async function tell(queue: string, ...told: readonly string[]): Promise<void> {
    const [, waiting] = (await tellKid(queue, [queue, ...told])) as readonly [unknown, number]
    if (waiting > 0) await deliver(queue)
  }

  async function linkTo(message: readonly string[]): Promise<void> {
    const [parent = '', queue = '', id = '', policy = '', birth = '', how = '', guess = ''] = message
    const place = await placeOf(parent, guess)
    const status = place === '' ? 'missing' : String(await linkKid(place, [place, parent, queue, id, policy, birth]))
    if (status === 'live') return
    // A parent that was deleted counts as cancelled; a replayed child waits only for those that are live.
    const ended = how === 'again' ? 'completed' : status === 'missing' ? 'cancelled' : status
    await tell(queue, id, birth, parent, ended, policy)
  }

  async function carry(message: string): Promise<void> {
    const [kind, ...parts] = message.split(' ')
    const [first = '', second = '', third = '', ...rest] = parts
    switch (kind) {
      case 'cancel':
        await write(keys.cancels(first), 'HSET', second, third)
        return
      case 'uncancel':
        await link.command('HDEL', keys.cancels(first), second)
        return
      case 'batch': {
        const said = await batch(batchTag(first), ['note', first, `${second} ${third}`, ...rest])
        if (said === 'finished') await fire(first as BatchId) // as inserted
        return
      }
      case 'link':
        return linkTo(parts)
      case 'told':
        return tell(first, ...parts.slice(1))
      default:
        store.logger.error({ kind }, 'redis: a message of another version was left in the outbox')
    }
  }

  async function deliver(queue: string): Promise<void> {
    try {
      await carryAll(keys.queue(queue, 'outbox'))
      stuck.delete(queue)
    } catch (error) {
      // Once: every later call of the queue tries again.
      if (!stuck.has(queue)) {
        store.logger.warn({ queue, error }, 'redis: messages between queues could not be delivered yet')
      }
      stuck.add(queue)
    }
  }

  async function carryAll(outbox: string): Promise<void> {
    const failures: unknown[] = []
    for (let page = 0; page < PAGES_MAX; page++) {
      const from = failures.length
      const messages = (await link.command('LRANGE', outbox, from, from + PAGE - 1)) as readonly string[]
      for (const message of messages) {
        try {
          await carry(message)
        } catch (error) {
          failures.push(error)
          if (failures.length >= FAILED_MAX) throw error
          continue
        }
        await link.command('LREM', outbox, 1, message)
      }
      if (messages.length < PAGE) break
    }
    if (failures.length > 0) throw failures[0]
  }

  async function fire(id: BatchId): Promise<void> {
    const record = await batchRecord(store, id)
    if (record === null) return
    const due = callbacksDue(record).map((name) => record.callbacks[name])
    await insert(due.filter((job) => job !== null))
    // Before it counts as done: whoever dies here leaves it to the next.
    await link.command('SREM', keys.cancelledBatches, id)
    await batch(batchTag(id), ['fired', id])
    await link.command('PUBLISH', keys.ends, id)
  }

  const callOnly: Outbox['callOnly'] = (what, name) => {
    const run = prepared(store, what, name)
    return async (queue, args) => ((await run(queue, args)) as readonly [unknown, number])[0]
  }

  return {
    call(what, name) {
      const run = prepared(store, what, name)
      return async (queue, args) => {
        const [reply, waiting] = (await run(queue, args)) as readonly [unknown, number]
        if (waiting > 0) await deliver(queue)
        return reply
      }
    },
    callOnly,
    deliver,
    fire,
    listCancelled: (id) => write(keys.cancelledBatches, 'SADD', id),
  }
}
