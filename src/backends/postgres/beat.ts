// A heartbeat: the statement and its reply, for the main loop and for the thread that beats on a connection of its own.
// This module is what the thread loads (`threadLiveness.module`).
import pg from 'pg'
import type { BeatReply, BeatRequest } from '../../store/worker-store.ts'
import { storeError } from './pg-errors.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'
import type { Value } from './rows-query.ts'
import { sqlText } from './sql-text.ts'

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
  const { ask, close } = heartbeatConnection(options)
  const text = sqlText(BEAT_SQL, options.schema)
  return {
    beat: async (request) => parseBeat((await ask('beat', text, beatValues(request)))[0]?.[0]),
    close,
  }
}

export interface HeartbeatConnection {
  /** `what` is for messages. */
  readonly ask: (what: string, text: string, values: readonly Value[]) => Promise<readonly Row[]>
  readonly close: () => Promise<void>
}

/** The one connection of a heartbeat thread. */
export function heartbeatConnection(options: BeatOptions): HeartbeatConnection {
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
    async ask(what, text, values) {
      try {
        const query = { text, values: [...values], rowMode: 'array' as const, types: asText }
        return (await pool.query<(string | null)[]>(query)).rows
      } catch (error) {
        throw storeError(error, `workers.${what}`)
      }
    },
    close: () => pool.end(),
  }
}

const asText = { getTypeParser: () => (value: unknown) => value }
