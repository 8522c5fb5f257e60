// The hybrid may work from PostgreSQL alone, and then a fault of Redis would not be felt. So a fault strikes, and a
// cell ends, when jobs do go through Redis.
import { Redis } from 'ioredis'
import { until } from '../tests/postgres/faults/until.ts'
import { query } from './query.ts'
import type { Stage } from './stage.ts'
import type { Place } from './system.ts'
import { QUEUE } from './systems/millrace.ts'

/** Where a queue was taken from Redis often, Redis has to answer for half a minute before tokens flow again (hybrid/times.ts). */
const FLOWS_MAX_MS = 45_000

/** What the hybrid keeps of a queue: its state, three lanes of tokens, and who has which. */
export const partKey = (queue: string, part: 'state' | 'high' | 'normal' | 'low' | 'held'): string =>
  `millrace:{${queue}}:${part}`

export const heldKey = (queue: string): string => partKey(queue, 'held')

/** Resolves when a token that was minted from now on has been taken from Redis by a worker. */
export async function flowsThroughRedis({ place, workers }: Stage): Promise<void> {
  const [row] = await query<{ mark: string }>(place, 'select last_value as mark from millrace.lease_seq')
  // By the way that the workers take.
  const client = new Redis(workers.at(-1)!.link.redis!.port, '127.0.0.1')
  client.on('error', () => undefined) // connects again
  try {
    // Somebody may have put something else there.
    const held = (): Promise<Record<string, string>> => client.hgetall(heldKey(QUEUE)).catch(() => ({}))
    const isTaken = async (): Promise<boolean> =>
      Object.entries(await held()).some(
        ([field, holder]) => holder.includes('/') && Number(field.split(':')[1]) > Number(row!.mark),
      )
    await until(isTaken, 'a new token in the hands of a worker', { limitMs: FLOWS_MAX_MS })
  } finally {
    client.disconnect()
  }
}

/** It goes up when the queue had to begin anew in Redis. */
export async function epochOf(place: Place): Promise<number> {
  const [row] = await query<{ epoch: string }>(
    place,
    'select d.epoch::text from millrace.dispatch d join millrace.job_queues q on q.id = d.queue_id where q.name = $1',
    [QUEUE],
  )
  return Number(row?.epoch ?? 0)
}
