// Hanging up. Over a dead link the goodbye is never answered, and whoever waits for it waits until the system gives
// up: a quarter of an hour.
import type pg from 'pg'
import { bounded } from '../../runtime/bounded.ts'
import { systemClock } from '../../runtime/clock.ts'

const GOODBYE_MAX_MS = 1_000

/** Never rejects; the connection is closed either way. */
export async function endClient(client: pg.Client): Promise<void> {
  try {
    await bounded(systemClock, GOODBYE_MAX_MS, 'closing a connection', client.end())
  } catch {
    client.connection.stream.destroy()
  }
}
