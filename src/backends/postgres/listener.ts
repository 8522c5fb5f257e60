// The one connection that LISTENs, and the NOTIFYs of this process. It proves itself: after LISTEN it sends a word to
// itself, and when that does not come back (a pooler in transaction mode) it says so once and leaves the work to
// polling. Lost connections are made again with backoff; the process never ends because of one.
import pg from 'pg'
import { bounded } from '../../runtime/bounded.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Connections, Statement } from './connections.ts'
import { endClient } from './end-client.ts'
import { storeError } from './pg-errors.ts'

const PROBE_MS = 2_000
const ANSWER_MAX_MS = 5_000
/** A link that died without a word is found out only by asking. */
const ASK_EVERY_MS = 30_000
const LINGER_MS = 10_000
const SEND_MAX_MS = 2_000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 10_000

export interface ListenerParts {
  readonly connections: Connections
  readonly channel: string
  /** This process, so that it does not hear itself. */
  readonly self: string
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly onPayload: (payload: string) => void
  readonly onBack: () => void
}

export class Listener {
  readonly #parts: ListenerParts
  readonly #notify: Statement
  #client: pg.Client | undefined
  #wanted = false
  #connecting = false
  #tries = 0
  #wasLost = false
  #isProven = false
  #hasWarned = false
  #timer: Timer | undefined
  #linger: Timer | undefined
  #probe: Timer | undefined
  #ask: Timer | undefined

  constructor(parts: ListenerParts) {
    this.#parts = parts
    this.#notify = { what: 'wakeups.notify', text: 'select pg_notify($1, $2)' }
  }

  /** Listens from now on, or stops. */
  want(wanted: boolean): void {
    this.#wanted = wanted
    this.#linger?.cancel()
    if (wanted) void this.#connect()
    // Whoever awaits one job after another must not connect for each of them.
    else this.#linger = this.#parts.clock.timer(LINGER_MS, () => void this.#drop())
  }

  /** A hint that cannot be sent is a hint lost, and nobody waits long for it: a poll has come by long before. */
  async send(payload: string): Promise<void> {
    const { connections, channel, self, logger } = this.#parts
    const sent = connections.run(this.#notify, [channel, `${self}\n${payload}`])
    await bounded(systemClock, SEND_MAX_MS, 'a hint', sent).catch((error: unknown) => {
      logger.debug({ error: storeError(error, 'wakeups.notify').message }, 'a hint was lost')
    })
  }

  async close(): Promise<void> {
    this.#wanted = false
    this.#timer?.cancel()
    this.#linger?.cancel()
    await this.#drop()
  }

  async #connect(): Promise<void> {
    if (this.#connecting || this.#client !== undefined || !this.#wanted) return
    this.#connecting = true
    const { statement_timeout: _, lock_timeout: __, ...config } = this.#parts.connections.config(' listen')
    const client = new pg.Client({ ...config, query_timeout: ANSWER_MAX_MS })
    client.on('error', (error) => this.#lost(client, error))
    client.on('end', () => this.#lost(client, undefined))
    client.on('notification', ({ payload = '' }) => this.#heard(payload))
    try {
      await client.connect()
      await client.query(`listen "${this.#parts.channel}"`)
      this.#connecting = false
      if (!this.#wanted) return await endClient(client)
      this.#client = client
      this.#tries = 0
      this.#startProbe(client)
      this.#askLater(client)
      if (this.#wasLost) this.#parts.onBack()
      this.#wasLost = false
    } catch (error) {
      this.#connecting = false
      void endClient(client)
      this.#again(error)
    }
  }

  #askLater(client: pg.Client): void {
    this.#ask = this.#parts.clock.timer(ASK_EVERY_MS, () => {
      client.query('select 1').then(
        () => this.#client === client && this.#askLater(client),
        (error: Error) => {
          void endClient(client)
          this.#lost(client, error)
        },
      )
    })
  }

  #startProbe(client: pg.Client): void {
    const { connections, channel, clock, logger, self } = this.#parts
    this.#isProven = false
    const warn = (): void => {
      if (this.#hasWarned) return
      this.#hasWarned = true
      logger.warn(
        { channel },
        'LISTEN gets no notifications (a pooler in transaction mode?): idle workers find new jobs by polling',
      )
    }
    connections.run(this.#notify, [channel, `${self}\nprobe`]).then(
      () => {
        if (this.#client === client && !this.#isProven) this.#probe = clock.timer(PROBE_MS, warn)
      },
      () => undefined, // what was not sent proves nothing
    )
  }

  #heard(payload: string): void {
    const end = payload.indexOf('\n')
    if (payload.slice(0, end) !== this.#parts.self) {
      this.#parts.onPayload(payload.slice(end + 1))
    } else if (payload.slice(end + 1) === 'probe') {
      this.#isProven = true
      this.#probe?.cancel()
    }
  }

  #lost(client: pg.Client, error: Error | undefined): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#probe?.cancel()
    this.#ask?.cancel()
    if (this.#wanted) this.#again(error)
  }

  #again(error: unknown): void {
    if (!this.#wanted) return
    this.#tries += 1
    this.#wasLost = true
    const backoffMs = Math.min(BACKOFF_MIN_MS * 2 ** Math.min(this.#tries, 10), BACKOFF_MAX_MS)
    const delayMs = backoffMs * (0.5 + this.#parts.random() / 2)
    if (this.#tries === 3) {
      const message = error === undefined ? 'the connection ended' : storeError(error, 'wakeups.listen').message
      this.#parts.logger.warn({ error: message }, 'the connection for hints is lost; polling until it is back')
    }
    this.#timer?.cancel()
    this.#timer = this.#parts.clock.timer(delayMs, () => void this.#connect())
  }

  async #drop(): Promise<void> {
    this.#timer?.cancel()
    this.#probe?.cancel()
    this.#ask?.cancel()
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) await endClient(client)
  }
}
