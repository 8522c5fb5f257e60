// Cluster only: delivering what a change of a job does on other nodes (lua/_outbox.lua). Messages are carried one by one
// and taken off the list afterwards, so whoever dies leaves them for the next; every receiver takes a message twice for once.
import { callbacksDue } from '../../core/batch.ts'
import type { BatchId, JobId, NewJob } from '../../core/job.ts'
import { batchRecord } from './batch-fields.ts'
import { idBytes } from './ids.ts'
import { batchTag } from './keys.ts'
import { findQueues } from './locate.ts'
import { prepared } from './store.ts'
import type { RedisStore, ScriptName } from './store.ts'
import type { RedisValue } from './link.ts'

export interface Outbox {
  /** Calls a script that may leave messages, and delivers them. */
  call(what: string, name: ScriptName): (queue: string, args: readonly RedisValue[]) => Promise<unknown>
  /** The same for a call that delivers later, together with others. */
  callOnly(what: string, name: ScriptName): (queue: string, args: readonly RedisValue[]) => Promise<unknown>
  deliver(queue: string): Promise<void>
  /** Inserts the callbacks of a finished batch. */
  fire(batch: BatchId): Promise<void>
}

const PAGE = 100
const PAGES_MAX = 100

export function createOutbox(store: RedisStore, insert: (jobs: readonly NewJob[]) => Promise<unknown>): Outbox {
  const { link, keys, where } = store
  const linkKid = prepared(store, 'jobs.insert', 'kidLink')
  const tellKid = prepared(store, 'jobs.apply', 'kidTold')
  const batch = prepared(store, 'jobs.apply', 'batchApart')

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
        await link.command('HSET', keys.cancels(first), second, third)
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
    const outbox = keys.queue(queue, 'outbox')
    for (let page = 0; page < PAGES_MAX; page++) {
      const messages = (await link.command('LRANGE', outbox, 0, PAGE - 1)) as readonly string[]
      for (const message of messages) {
        await carry(message)
        await link.command('LREM', outbox, 1, message)
      }
      if (messages.length < PAGE) return
    }
  }

  async function fire(id: BatchId): Promise<void> {
    const record = await batchRecord(store, id)
    if (record === null) return
    const due = callbacksDue(record).map((name) => record.callbacks[name])
    await insert(due.filter((job) => job !== null))
    await batch(batchTag(id), ['fired', id])
    await link.command('SREM', keys.cancelledBatches, id)
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
  }
}
