// A heartbeat: the statement and its reply, for the main loop and for the thread that beats on a connection of its own.
// This module is what the thread loads (`threadLiveness.module`).
import pg from 'pg'
import type { BeatReply, BeatRequest } from '../../store/worker-store.ts'
import { storeError } from './pg-errors.ts'
import { sqlText } from './sql-text.ts'
import { isAbsent } from './row.ts'

export interface BeatOptions {
  readonly url: string
  readonly schema: string
  readonly applicationName: string
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
}

export const BEAT_SQL = 'select millrace.beat_worker($1, $2, $3, $4)'

export function beatValues({ id, running, commandsSeen, blockedMs }: BeatRequest): readonly (string | number)[] {
  return [id, running, commandsSeen, Math.round(blockedMs ?? 0)]
}

const DEAD: BeatReply = { alive: false, cancels: [], commands: [] }

export function parseBeat(text: string | null | undefined): BeatReply {
  // Written by millrace.beat_worker.
  return isAbsent(text) ? DEAD : (JSON.parse(text) as BeatReply)
}

/** A beat over a connection of its own, made again whenever it is lost. */
export async function createBeat(options: BeatOptions): Promise<{
  beat(request: BeatRequest): Promise<BeatReply>
  close(): Promise<void>
}> {
  const text = sqlText(BEAT_SQL, options.schema)
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: `${options.applicationName} heartbeat`,
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: options.statementTimeoutMs,
    max: 1,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  })
  pool.on('error', () => undefined) // the next beat says what is wrong
  return {
    async beat(request) {
      try {
        const query = { text, values: [...beatValues(request)], rowMode: 'array' as const, types: asText }
        const { rows } = await pool.query<[string | null]>(query)
        return parseBeat(rows[0]?.[0])
      } catch (error) {
        throw storeError(error, 'workers.beat')
      }
    },
    close: () => pool.end(),
  }
}

const asText = { getTypeParser: () => (value: unknown) => value }
