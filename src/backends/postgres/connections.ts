// The connections of one process: a pool for work, one for the claims of each worker, one apart for heartbeats, so
// that a beat never waits behind work; and the translation of every error. A statement that met a deadlock is made again: it was rolled back.
import { createHash } from 'node:crypto'
import pg from 'pg'
import type { PoolClient, PoolConfig } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import { placeOf } from './migrate-connect.ts'
import { limited } from './limited-client.ts'
import { OrderedConnection } from './ordered.ts'
import { sqlStateOf, storeError } from './pg-errors.ts'
import { Pool } from './pool.ts'
import type { Row } from './row.ts'
import { RowsQuery } from './rows-query.ts'
import type { Value } from './rows-query.ts'

export interface ConnectionOptions {
  readonly url: string
  /** Connections for work; on top of them one for heartbeats, one for hints, two per worker (claims, its heartbeat thread). */
  readonly poolMax: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly applicationName: string
  /** Named prepared statements; a pooler in transaction mode may not have them. */
  readonly prepare: boolean
  readonly logger: Logger
}

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
const TOO_MANY_CONNECTIONS = '53300'
/** A beat that was not answered by then is worth a new connection: there is time for another before the ttl. */
export const BEAT_MAX_MS = 3_000

export class Connections {
  readonly #options: ConnectionOptions
  #pool: Pool | undefined
  #beats: Pool | undefined
  #users = 0
  #prepare: boolean
  #closed = false
  #unprepared = 0
  readonly #names = new Map<string, string>()
  readonly #limits = { isOff: false }
  /** By worker. */
  readonly #ordered = new Map<string, OrderedConnection>()

  constructor(options: ConnectionOptions) {
    checkUrl(options.url)
    this.#options = options
    this.#prepare = options.prepare
  }

  open(): void {
    this.#users += 1
    this.#closed = false
    this.#pool ??= this.#createPool(this.#options.poolMax, this.config(''))
    this.#beats ??= this.#createPool(1, this.config(' heartbeat'))
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
    return this.#runOn(this.#pool, statement, values, this.#callMaxMs)
  }

  /** In order with the other statements of this worker. */
  runOrdered(worker: string, statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#again(statement, false, (name) => this.#orderedOf(worker).run(statement, values, name))
  }

  #orderedOf(worker: string): OrderedConnection {
    // A life that was lost leaves its connection behind: nobody signs it off.
    if (this.#ordered.size > 1) {
      for (const [other, connection] of this.#ordered) {
        if (other === worker || !connection.isForgotten) continue
        this.#ordered.delete(other)
        void connection.close()
      }
    }
    const known = this.#ordered.get(worker)
    if (known !== undefined) return known
    const connection = new OrderedConnection(() => this.config(' worker'), this.#callMaxMs)
    this.#ordered.set(worker, connection)
    return connection
  }

  /** The worker has ended. */
  async endOrdered(worker: string): Promise<void> {
    const connection = this.#ordered.get(worker)
    this.#ordered.delete(worker)
    await connection?.close()
  }

  /** On the connection that is kept for heartbeats. */
  beat(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    return this.#runOn(this.#beats, statement, values, BEAT_MAX_MS)
  }

  /** A connection for several statements; `work` ends its transaction itself. */
  async with<Result>(what: string, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#pool === undefined) throw stopped()
    const client = await this.#connect(this.#pool, what)
    let isBroken = false
    try {
      return await work(limited(client, this.#callMaxMs))
    } catch (error) {
      isBroken = true
      throw storeError(error, what)
    } finally {
      client.release(isBroken)
    }
  }

  async #connect(pool: Pool, what: string): Promise<PoolClient> {
    for (let tryNo = 1; ; tryNo++) {
      try {
        return await pool.connect()
      } catch (error) {
        if (tryNo >= TRIES_MAX || !(await this.#mayTryAgain(error, false, true))) {
          const { url } = this.#options
          throw storeError(error, `${what}, connecting to ${placeOf(new pg.Client({ connectionString: url }))}`)
        }
      }
    }
  }

  #runOn(
    pool: Pool | undefined,
    { what, text }: Statement,
    values: readonly Value[],
    timeoutMs: number,
  ): Promise<readonly Row[]> {
    return this.#again({ what, text }, pool === this.#pool, async (name) => {
      if (pool === undefined) throw stopped()
      return pool.query(new RowsQuery({ text, values, name, timeoutMs }))
    })
  }

  /** Whatever happens on the way, no call waits for ever. */
  get #callMaxMs(): number {
    return this.#options.statementTimeoutMs + 5_000
  }

  async #again(
    { what, text }: Statement,
    isPooled: boolean,
    send: (name: string | undefined) => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> {
    for (let tryNo = 1; ; tryNo++) {
      if (this.#closed) throw stopped()
      const prepared = this.#prepare
      try {
        return await send(prepared ? this.#nameOf(text) : undefined)
      } catch (error) {
        if (tryNo >= TRIES_MAX || !(await this.#mayTryAgain(error, prepared, isPooled))) throw storeError(error, what)
      }
    }
  }

  /** The statement had no effect, and what was in its way is out of the way. */
  async #mayTryAgain(error: unknown, prepared: boolean, isPooled: boolean): Promise<boolean> {
    const state = sqlStateOf(error) ?? ''
    if (AGAIN.has(state)) return true
    if (prepared && NOT_PREPARED.has(state)) {
      // On a pipelined connection it may only mean that the call before it failed; with a pooler it comes again.
      this.#unprepared += 1
      if (isPooled || this.#unprepared > 2) this.#preparedOff()
      return true
    }
    if (isRefusedParameter(error)) {
      this.#limitsOff()
      return true
    }
    if (state !== TOO_MANY_CONNECTIONS || this.#pool === undefined) return false
    return isPooled ? this.#pool.makeDo() : await this.#pool.makeRoom().catch(() => false)
  }

  // Several calls may find out at once; it is said once.
  #preparedOff(): void {
    if (!this.#prepare) return
    this.#prepare = false
    this.#options.logger.warn({}, 'a pooler without prepared statements: going on without them')
  }

  /** A pooler that does not know our time limits: those of the client hold alone. */
  #limitsOff(): void {
    if (this.#limits.isOff) return
    this.#limits.isOff = true
    for (const pool of [this.#pool, this.#beats]) pool?.change(NO_LIMITS)
    this.#options.logger.warn(
      {},
      'a pooler refuses statement_timeout and lock_timeout at connect: going on without them; set them with `alter role … set`, or list them in ignore_startup_parameters',
    )
  }

  /** For a connection of its own; the suffix tells it apart in pg_stat_activity. */
  config(suffix: string): PoolConfig {
    const { url, applicationName, connectTimeoutMs, statementTimeoutMs, lockTimeoutMs } = this.#options
    return {
      connectionString: url,
      application_name: `${applicationName}${suffix}`,
      connectionTimeoutMillis: connectTimeoutMs,
      // Asked after ten idle seconds and then every second: a dead link is known for dead ten seconds later.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      ...(!this.#limits.isOff && { statement_timeout: statementTimeoutMs, lock_timeout: lockTimeoutMs }),
    }
  }

  /**
   * Short and the same for the same text, in every process: behind a pooler they share sessions, and a name must
   * never stand for another statement there.
   */
  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) {
      name = `millrace_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
      this.#names.set(text, name)
    }
    return name
  }

  #createPool(max: number, config: PoolConfig): Pool {
    const { logger } = this.#options
    const onLost = (error: Error): void => logger.warn({ error: storeError(error, 'connection').message }, 'lost')
    return new Pool({ config, max, onLost })
  }
}

/** Without its text in the message: it may hold a password. */
export function checkUrl(url: string, option = 'url'): void {
  const fail = (): never => {
    const message = `${option} is not an address like postgres://user:password@host:5432/database`
    throw new MillraceError('INVALID_OPTION', message, { details: { option } })
  }
  if (!/^(?:postgres(?:ql)?:\/\/|socket:|\/)/i.test(url)) fail()
  try {
    new pg.Client({ connectionString: url })
  } catch {
    fail()
  }
}

const NO_LIMITS = { statement_timeout: undefined, lock_timeout: undefined }

function isRefusedParameter(error: unknown): boolean {
  return sqlStateOf(error) === '08P01' && error instanceof Error && /startup parameter/.test(error.message)
}

export function stopped(): MillraceError {
  return new MillraceError('STOPPED', 'the postgres backend was stopped; create a new one')
}
