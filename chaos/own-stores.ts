// Stores of one cell alone, where what is done to them needs a server of its own: one with a standby, one on a small disk.
import { moveToSmallDisk } from '../tests/postgres/faults/small-disk.ts'
import type { SmallDisk } from '../tests/postgres/faults/small-disk.ts'
import { freshDatabase, startTestPostgres } from '../tests/support/postgres-server.ts'
import type { PostgresServer } from '../tests/support/postgres-server.ts'
import { STANDBY_NAME, startPostgresPair } from '../tests/support/postgres-standby.ts'
import type { PostgresPair } from '../tests/support/postgres-standby.ts'
import { until } from '../tests/postgres/faults/until.ts'
import { query } from './query.ts'
import { CONNECTIONS_MAX } from './servers.ts'
import { steadyPort } from './steady-port.ts'
import type { Place } from './system.ts'

export interface OwnStores {
  readonly place: Place
  readonly pair?: PostgresPair
  readonly disk?: SmallDisk
  close(): Promise<void>
}

const VERSION = 18
const MAX_CONNECTIONS = { max_connections: String(CONNECTIONS_MAX) }
const DISK_MB = 256
/** Little that could be freed or asked for by itself: the disk is as full as somebody fills it. */
const SMALL = { shared_buffers: '16MB', max_wal_size: '96MB', min_wal_size: '96MB', autovacuum: 'off' }
const SPARE_SEGMENTS = 3

/** `sync`: a commit is acknowledged when the standby has it, too. */
export async function withStandby(usual: Place, kind: 'sync' | 'async'): Promise<OwnStores> {
  const pair = await startPostgresPair(MAX_CONNECTIONS, { version: VERSION, port: await steadyPort() })
  const close = async (): Promise<void> => {
    // One of them is down as a rule.
    await Promise.allSettled([pair.primary.stop('immediate'), pair.standby.stop('immediate')])
  }
  try {
    const place = await placeOn(pair.primary, usual)
    if (kind === 'sync') await makeSynchronous(place)
    return { place, pair, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function makeSynchronous(place: Place): Promise<void> {
  await query(place, `alter system set synchronous_standby_names = '${STANDBY_NAME}'`)
  await query(place, 'select pg_reload_conf()')
  await until(async () => {
    const rows = await query(place, `select 1 from pg_stat_replication where sync_state = 'sync'`)
    return rows.length === 1
  }, 'the standby to be synchronous')
}

export async function onSmallDisk(usual: Place): Promise<OwnStores> {
  const settings = { ...MAX_CONNECTIONS, ...SMALL }
  const server = await startTestPostgres({ version: VERSION, settings, port: await steadyPort() })
  let disk: SmallDisk | undefined
  const close = async (): Promise<void> => {
    await server.stop('immediate').catch(() => undefined) // it may be down
    disk?.unmount()
  }
  try {
    disk = await moveToSmallDisk(server, DISK_MB)
    const place = await placeOn(server, usual)
    // Segments of the log that are there already: without one the server would end itself, which is another fault.
    for (let count = 0; count < SPARE_SEGMENTS; count++) {
      await query(place, `select pg_logical_emit_message(false, 'chaos', 'next'), pg_switch_wal()`)
    }
    await query(place, 'checkpoint')
    return { place, disk, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function placeOn(server: PostgresServer, usual: Place): Promise<Place> {
  return { ...usual, postgres: (await freshDatabase(server)).url }
}
