// The pool of one process. It makes do with what it has: when the server has no connection left, calls wait for those
// that are open instead of failing, and after a while the pool tries to grow again.
import pg from 'pg'
import type { PoolClient, PoolConfig } from 'pg'
import { bounded } from '../../runtime/bounded.ts'
import { systemClock } from '../../runtime/clock.ts'
import { endClient } from './end-client.ts'
import type { Row } from './row.ts'
import type { RowsQuery } from './rows-query.ts'

export interface PoolParts {
  readonly config: PoolConfig
  readonly max: number
  /** A connection broke while nobody used it; the pool makes a new one when it is needed. */
  readonly onLost: (error: Error) => void
}

const CROWDED_MS = 5_000
const LENT_MAX_MS = 5_000

export class Pool {
  readonly #pool: pg.Pool
  readonly #max: number
  readonly #open = new Set<PoolClient>()
  #crowdedUntilMs = -Infinity

  constructor({ config, max, onLost }: PoolParts) {
    this.#max = max
    this.#pool = new pg.Pool({ ...config, max })
    this.#pool.on('error', onLost)
    this.#pool.on('connect', (client) => {
      // While it is lent the pool does not listen, and an error that nobody hears ends the process.
      client.on('error', () => undefined)
      this.#open.add(client)
      client.once('end', () => this.#open.delete(client))
    })
  }

  connect(): Promise<PoolClient> {
    this.#maybeGrow()
    return this.#pool.connect()
  }

  query(query: RowsQuery): Promise<readonly Row[]> {
    this.#maybeGrow()
    // The pool hands a query of any class to a client, and resolves to what that calls back with.
    return this.#pool.query(query as never) as unknown as Promise<readonly Row[]>
  }

  /** For connections to come. */
  change(config: PoolConfig): void {
    Object.assign(this.#pool.options, config)
  }

  /** The server has no connection left. True when there are some of ours, open or on their way, to wait for. */
  makeDo(): boolean {
    this.#crowdedUntilMs = systemClock.monoMs() + CROWDED_MS
    this.#pool.options.max = Math.max(this.#open.size, 1)
    return this.#pool.totalCount > 0
  }

  /** Gives the next connection up that is free, so that one for another purpose finds room. The last one stays. */
  async makeRoom(): Promise<boolean> {
    this.makeDo()
    if (this.#pool.totalCount < 2) return false
    const client = await this.#pool.connect()
    client.release(true)
    // The server has let go of it when it hangs up.
    await endClient(client)
    this.#open.delete(client)
    this.makeDo()
    return true
  }

  /** Calls under way get a moment to end; those on a dead link would take their whole time limit. */
  async end(): Promise<void> {
    await bounded(systemClock, LENT_MAX_MS, 'the last calls', this.#pool.end()).catch(() => undefined)
    await Promise.all([...this.#open].map(endClient))
  }

  #maybeGrow(): void {
    if (this.#pool.options.max === this.#max || systemClock.monoMs() < this.#crowdedUntilMs) return
    this.#pool.options.max = this.#max
  }
}
