// One connection on which statements follow each other without waiting for answers: the server takes them in order,
// and starts the next one while this process still reads the answer of the last. For the claims of one worker.
import pg from 'pg'
import type { ClientConfig } from 'pg'
import { systemClock } from '../../runtime/clock.ts'
import type { Statement } from './connections.ts'
import { endClient } from './end-client.ts'
import { sqlStateOf } from './pg-errors.ts'
import type { Row } from './row.ts'
import { RowsQuery } from './rows-query.ts'
import type { Value } from './rows-query.ts'

/** A worker that lives asks at least every second. */
const FORGOTTEN_MS = 60_000
/** Deadlocks and time limits say nothing about the session. */
const HARMLESS = new Set(['40001', '40P01', '55P03', '57014'])

export class OrderedConnection {
  readonly #config: () => ClientConfig
  readonly #timeoutMs: number
  #client: Promise<pg.Client> | undefined
  #usedMs = systemClock.monoMs()

  constructor(config: () => ClientConfig, timeoutMs: number) {
    this.#config = config
    this.#timeoutMs = timeoutMs
  }

  /** Nobody has used it for long. */
  get isForgotten(): boolean {
    return systemClock.monoMs() - this.#usedMs > FORGOTTEN_MS
  }

  async run({ text }: Statement, values: readonly Value[], name: string | undefined): Promise<readonly Row[]> {
    this.#usedMs = systemClock.monoMs()
    const connecting = (this.#client ??= this.#connect())
    const client = await connecting
    try {
      return await new Promise<readonly Row[]>((resolve, reject) => {
        const query = new RowsQuery({ text, values, name, timeoutMs: this.#timeoutMs })
        // Not assigned where it is written: see rows-query.ts.
        const onEnd: RowsQuery['callback'] = (error, rows = []) => (error === null ? resolve(rows) : reject(error))
        query.callback = onEnd
        client.query(query as unknown as pg.Submittable)
      })
    } catch (error) {
      // What is wrong may be wrong with this session for good: a read-only one, a plan that does not fit any more.
      if (this.#client === connecting && !HARMLESS.has(sqlStateOf(error) ?? '')) {
        this.#client = undefined
        void endClient(client)
      }
      throw error
    }
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.then(endClient, () => undefined)
  }

  #connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#config(), pipeline: true })
    const connecting = client.connect()
    // Whatever was under way fails by itself; the next call makes a new connection. The end of an old one, which may
    // come late, says nothing about its successor.
    const lost = (): void => {
      if (this.#client === connecting) this.#client = undefined
    }
    client.on('error', lost)
    client.on('end', lost)
    connecting.catch(lost)
    return connecting
  }
}
