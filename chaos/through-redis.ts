// The hybrid may work from PostgreSQL alone, and then a fault of Redis would not be felt. So a fault strikes, and a
// cell ends, when jobs do go through Redis.
import { Redis } from 'ioredis'
import { until } from '../tests/postgres/faults/until.ts'
import { query } from './query.ts'
import type { Stage } from './stage.ts'
import { QUEUE } from './systems/millrace.ts'

/** Who has which token. */
export const HELD = `millrace:{${QUEUE}}:held`

/** Resolves when a token that was minted from now on has been taken from Redis by a worker. */
export async function flowsThroughRedis({ place, workers }: Stage): Promise<void> {
  const [row] = await query<{ mark: string }>(place, 'select last_value as mark from millrace.lease_seq')
  // By the way that the workers take.
  const client = new Redis(workers.at(-1)!.link.redis!.port, '127.0.0.1')
  client.on('error', () => undefined) // connects again
  try {
    const isTaken = async (): Promise<boolean> =>
      Object.entries(await client.hgetall(HELD)).some(
        ([field, holder]) => holder.includes('/') && Number(field.split(':')[1]) > Number(row!.mark),
      )
    await until(isTaken, 'a new token in the hands of a worker')
  } finally {
    client.disconnect()
  }
}
