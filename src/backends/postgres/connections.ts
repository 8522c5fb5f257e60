// The connections of one process: a pool for work, one apart for heartbeats, so that a beat never waits behind
// work, and the translation of every error. A statement that met a deadlock is made again: it was rolled back.
import pg from 'pg'
import type { PoolClient, PoolConfig, QueryArrayResult } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import { sqlStateOf, storeError } from './pg-errors.ts'

export interface ConnectionOptions {
  readonly url: string
  /** Connections for work; one more is kept for heartbeats, one for hints. */
  readonly poolMax: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly applicationName: string
  /** Named prepared statements; a pooler in transaction mode may not have them. */
  readonly prepare: boolean
  readonly logger: Logger
}

export type Value = string | number | boolean | null | Buffer

/** Rows are arrays of texts: the callers know what each column is, and parse only what they need. */
export type Row = readonly (string | null)[]

export interface Statement {
  /** The port and method, for messages. */
  readonly what: string
  readonly text: string
}

const DEADLOCK_TRIES_MAX = 5
/** Deadlock and serialisation failure: rolled back, safe to make again. */
const AGAIN = new Set(['40P01', '40001'])
/** Prepared statement missing, or there already: the pooler gave us another server connection. */
const NOT_PREPARED = new Set(['26000', '42P05', '08P01'])
const asText = { getTypeParser: () => (value: unknown) => value }

export class Connections {
  readonly #options: ConnectionOptions
  #pool: pg.Pool | undefined
  #beats: pg.Pool | undefined
  #users = 0
  #prepare: boolean
  #closed = false
  readonly #names = new Map<string, string>()

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#prepare = options.prepare
  }

  open(): void {
    this.#users += 1
    this.#closed = false
    this.#pool ??= this.#createPool(this.#options.poolMax, '')
    this.#beats ??= this.#createPool(1, ' heartbeat')
  }

  /** True when the last user has gone and everything is closed. */
  async close(): Promise<boolean> {
    this.#users = Math.max(this.#users - 1, 0)
    if (this.#users > 0) return false
    this.#closed = true
    const pools = [this.#pool, this.#beats]
    this.#pool = this.#beats = undefined
    await Promise.all(pools.map((pool) => pool?.end()))
    return true
  }

  run(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#runOn(this.#pool, statement, values)
  }

  /** On the connection that is kept for heartbeats. */
  beat(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#runOn(this.#beats, statement, values)
  }

  /** A connection for several statements; `work` ends its transaction itself. */
  async with<Result>(what: string, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#pool === undefined) throw stopped()
    let client: PoolClient
    try {
      client = await this.#pool.connect()
    } catch (error) {
      throw storeError(error, what)
    }
    let broken = true
    try {
      const result = await work(client)
      broken = false
      return result
    } catch (error) {
      throw storeError(error, what)
    } finally {
      client.release(broken)
    }
  }

  async #runOn(
    pool: pg.Pool | undefined,
    { what, text }: Statement,
    values: readonly Value[],
  ): Promise<readonly Row[]> {
    for (let tryNo = 1; ; tryNo++) {
      if (pool === undefined || this.#closed) throw stopped()
      const prepared = this.#prepare
      try {
        const query = {
          text,
          values: values as Value[],
          rowMode: 'array' as const,
          types: asText,
          ...(prepared && { name: this.#nameOf(text) }),
        }
        const { rows } = (await pool.query(query)) as QueryArrayResult<(string | null)[]>
        return rows
      } catch (error) {
        const state = sqlStateOf(error) ?? ''
        if (AGAIN.has(state) && tryNo < DEADLOCK_TRIES_MAX) continue
        if (prepared && NOT_PREPARED.has(state) && tryNo < DEADLOCK_TRIES_MAX) {
          this.#prepare = false
          this.#options.logger.warn({ what }, 'a pooler without prepared statements: going on without them')
          continue
        }
        throw storeError(error, what)
      }
    }
  }

  /** Short and the same for the same text: a session knows the statement by it. */
  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) this.#names.set(text, (name = `millrace_${this.#names.size}`))
    return name
  }

  #createPool(max: number, suffix: string): pg.Pool {
    const pool = new pg.Pool({ ...poolConfig(this.#options, suffix), max })
    // A connection that breaks while idle: the pool makes a new one when it is needed.
    pool.on('error', (error) => this.#options.logger.warn({ error: storeError(error, 'connection').message }, 'lost'))
    return pool
  }
}

export function poolConfig(options: ConnectionOptions, suffix: string): PoolConfig {
  return {
    connectionString: options.url,
    application_name: `${options.applicationName}${suffix}`,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs,
    // Whatever happens on the way, no call waits for ever.
    query_timeout: options.statementTimeoutMs + 5_000,
    keepAlive: true,
    allowExitOnIdle: false,
  }
}

export function stopped(): MillraceError {
  return new MillraceError('STOPPED', 'the postgres backend was stopped; create a new one')
}
