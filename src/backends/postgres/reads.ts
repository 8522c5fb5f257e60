// Where reporting reads go: to the replica, when there is one and it answers, and to the primary otherwise. What the
// replica cannot answer the primary answers instead, so a replica may be away, lag behind a migration or cancel a
// statement that is in its way; only a read that took too long is not made a second time where it would do more harm.
import { MillraceError } from '../../core/errors.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Connections } from './connections.ts'

export interface ReadsOptions {
  readonly primary: Connections
  readonly replica: Connections | undefined
  readonly logger: Logger
}

/** So long nobody waits for a replica that did not answer. */
const REST_MS = 5_000
const STATEMENT_TIMEOUT = '57014'

export class Reads {
  readonly #options: ReadsOptions
  #restsUntilMs = -Infinity
  #isAway = false

  constructor(options: ReadsOptions) {
    this.#options = options
  }

  open(): void {
    this.#options.replica?.open()
  }

  async close(): Promise<void> {
    await this.#options.replica?.close()
  }

  get replica(): Connections | undefined {
    return this.#options.replica
  }

  /** True where answers may be older than those of the primary. */
  get mayLag(): boolean {
    return this.#options.replica !== undefined
  }

  /** Asked of the replica it may be asked again, of the primary: it must only read. */
  async from<Value>(ask: (connections: Connections) => Promise<Value>): Promise<Value> {
    const { primary, replica } = this.#options
    if (replica === undefined || systemClock.monoMs() < this.#restsUntilMs) return ask(primary)
    let wrong: unknown
    try {
      const value = await ask(replica)
      this.#back()
      return value
    } catch (error) {
      if (isTooLong(error)) throw error
      wrong = error
    }
    const value = await ask(primary)
    // It is the replica then, and not what was asked for.
    if (!isConflict(wrong)) this.#away(wrong)
    return value
  }

  #away(error: unknown): void {
    this.#restsUntilMs = systemClock.monoMs() + REST_MS
    if (this.#isAway) return
    this.#isAway = true
    this.#options.logger.warn({ error }, 'the replica of PostgreSQL does not answer: reading from the primary')
  }

  #back(): void {
    if (!this.#isAway) return
    this.#isAway = false
    this.#options.logger.info({}, 'the replica of PostgreSQL answers again')
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof MillraceError && error.details['sqlState'] === STATEMENT_TIMEOUT
}

/** The primary removed what the statement still needed: the next one may well be answered. */
function isConflict(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'STORE_CONFLICT'
}
