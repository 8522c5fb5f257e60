// The connections of one process: a pool for work, one for the claims of each worker, one apart for heartbeats, so
// that a beat never waits behind work; and the translation of every error. A statement that met a deadlock is made again: it was rolled back.
import pg from 'pg'
import type { PoolClient, PoolConfig, QueryArrayResult } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import { OrderedConnection } from './ordered.ts'
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

const TRIES_MAX = 5
/** Deadlock and serialisation failure: rolled back, safe to make again. */
const AGAIN = new Set(['40P01', '40001'])
/** Prepared statement missing, or there already: the pooler gave us another server connection. */
const NOT_PREPARED = new Set(['26000', '42P05'])
const asText = { getTypeParser: () => (value: unknown) => value }

export class Connections {
  readonly #options: ConnectionOptions
  #pool: pg.Pool | undefined
  #beats: pg.Pool | undefined
  #users = 0
  #prepare: boolean
  #closed = false
  readonly #names = new Map<string, string>()
  readonly #limits = { isOff: false }
  /** By worker. */
  readonly #ordered = new Map<string, OrderedConnection>()

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
    const ordered = [...this.#ordered.values()]
    this.#ordered.clear()
    await Promise.all([...pools.map((pool) => pool?.end()), ...ordered.map((connection) => connection.close())])
    return true
  }

  run(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#runOn(this.#pool, statement, values)
  }

  /** In order with the other statements of this worker. */
  runOrdered(worker: string, statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    let connection = this.#ordered.get(worker)
    if (connection === undefined) this.#ordered.set(worker, (connection = new OrderedConnection(() => this.config(' worker'))))
    return this.#again(statement, (name) => connection.run(statement, values, name))
  }

  /** The worker has ended. */
  async endOrdered(worker: string): Promise<void> {
    const connection = this.#ordered.get(worker)
    this.#ordered.delete(worker)
    await connection?.close()
  }

  /** On the connection that is kept for heartbeats. */
  beat(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#runOn(this.#beats, statement, values)
  }

  async #connect(pool: pg.Pool, what: string): Promise<PoolClient> {
    try {
      return await pool.connect()
    } catch (error) {
      if (!isRefusedParameter(error) || this.#limits.isOff) throw storeError(error, what)
      this.#limitsOff()
      return this.#connect(pool, what)
    }
  }

  /** A connection for several statements; `work` ends its transaction itself. */
  async with<Result>(what: string, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#pool === undefined) throw stopped()
    const client = await this.#connect(this.#pool, what)
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

  #runOn(pool: pg.Pool | undefined, statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#again(statement, async (name) => {
      if (pool === undefined) throw stopped()
      const query = {
        text: statement.text,
        values: values as Value[],
        rowMode: 'array' as const,
        types: asText,
        ...(name && { name }),
      }
      const { rows } = (await pool.query(query)) as QueryArrayResult<(string | null)[]>
      return rows
    })
  }

  async #again(
    { what, text }: Statement,
    send: (name: string | undefined) => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> {
    for (let tryNo = 1; ; tryNo++) {
      if (this.#closed) throw stopped()
      const prepared = this.#prepare
      try {
        return await send(prepared ? this.#nameOf(text) : undefined)
      } catch (error) {
        const state = sqlStateOf(error) ?? ''
        if (AGAIN.has(state) && tryNo < TRIES_MAX) continue
        if (prepared && NOT_PREPARED.has(state) && tryNo < TRIES_MAX) {
          this.#prepare = false
          this.#options.logger.warn({ what }, 'a pooler without prepared statements: going on without them')
          continue
        }
        if (isRefusedParameter(error) && !this.#limits.isOff) {
          this.#limitsOff()
          continue
        }
        throw storeError(error, what)
      }
    }
  }

  /** A pooler that does not know our time limits: those of the client hold alone. */
  #limitsOff(): void {
    this.#limits.isOff = true
    for (const pool of [this.#pool, this.#beats]) if (pool !== undefined) Object.assign(pool.options, NO_LIMITS)
    this.#options.logger.warn({}, 'a pooler refuses statement_timeout and lock_timeout at connect: going on without them')
  }

  /** For a connection of its own; the suffix tells it apart in pg_stat_activity. */
  config(suffix: string): PoolConfig {
    const { url, applicationName, connectTimeoutMs, statementTimeoutMs, lockTimeoutMs } = this.#options
    return {
      connectionString: url,
      application_name: `${applicationName}${suffix}`,
      connectionTimeoutMillis: connectTimeoutMs,
      // Whatever happens on the way, no call waits for ever.
      query_timeout: statementTimeoutMs + 5_000,
      keepAlive: true,
      ...(!this.#limits.isOff && { statement_timeout: statementTimeoutMs, lock_timeout: lockTimeoutMs }),
    }
  }

  /** Short and the same for the same text: a session knows the statement by it. */
  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) this.#names.set(text, (name = `millrace_${this.#names.size}`))
    return name
  }

  #createPool(max: number, suffix: string): pg.Pool {
    const pool = new pg.Pool({ ...this.config(suffix), max })
    // A connection that breaks while idle: the pool makes a new one when it is needed.
    pool.on('error', (error) => this.#options.logger.warn({ error: storeError(error, 'connection').message }, 'lost'))
    return pool
  }
}

const NO_LIMITS = { statement_timeout: undefined, lock_timeout: undefined }

function isRefusedParameter(error: unknown): boolean {
  return sqlStateOf(error) === '08P01' && error instanceof Error && /startup parameter/.test(error.message)
}

export function stopped(): MillraceError {
  return new MillraceError('STOPPED', 'the postgres backend was stopped; create a new one')
}
