// The embedded PostgreSQL: a real server in a directory of the project, started by the first process that wants
// it, shared by all, stopped when the last one has gone. This file is the stay of one process: it holds on to the
// server, and brings guardian and server back when somebody killed them.
import { MillraceError, isMillraceError } from '../../core/errors.ts'
import { systemClock } from '../../runtime/clock.ts'
import { silentLogger } from '../../runtime/logger.ts'
import type { Logger } from '../../runtime/logger.ts'
import { findBinaries } from './binaries.ts'
import type { FindBinariesOptions } from './binaries.ts'
import { readPassword } from './cluster.ts'
import { ensureServer } from './ensure-server.ts'
import type { Place, Session } from './ensure-server.ts'
import { DATABASE, ROLE, openFiles } from './files.ts'
import { findPostmaster } from './postmaster.ts'
import { presenceOf } from './processes.ts'
import { readState } from './state.ts'

export interface EmbeddedOptions {
  /** Default `.millrace` in the current directory. */
  readonly dir?: string
  readonly logger?: Logger
  /** How long the server outlives its last user, so that a restart of the program finds it running. */
  readonly lingerMs?: number
  /** The longest a start may take, with the wait for others that start or stop the server. */
  readonly timeoutMs?: number
  /** Where to look for the programs; for tests. */
  readonly binaries?: FindBinariesOptions
}

export interface EmbeddedServer {
  readonly url: string
  readonly dir: string
  /** Leaves the server; it stops soon after its last user has. May be called twice. */
  stop(): Promise<void>
}

const LINGER_MS = 1_000
const TIMEOUT_MS = 60_000
const RECOVERIES_MAX = 8
const RECOVERY_WAIT_MS = 100

/** Resolves when the server takes connections. Does not keep the process alive. */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedServer> {
  const { dir = '.millrace', logger = silentLogger, lingerMs = LINGER_MS, timeoutMs = TIMEOUT_MS } = options
  let session: Session | undefined
  try {
    const files = openFiles(dir)
    const place: Place = { files, logger, lingerMs, timeoutMs, findBinaries: () => findBinaries(options.binaries) }
    session = await ensureServer(place)
    return new Stay(place, session, readPassword(files.password))
  } catch (error) {
    session?.hold.release()
    if (isMillraceError(error)) throw error
    const message = `the embedded PostgreSQL in ${dir} did not start: ${String(error)}`
    throw new MillraceError('EMBEDDED_FAILED', message, { cause: error })
  }
}

class Stay implements EmbeddedServer {
  readonly url: string
  readonly dir: string
  readonly #place: Place
  #session: Session
  #recovery: Promise<void> | undefined
  #end: Promise<void> | undefined

  constructor(place: Place, session: Session, password: string) {
    this.url = `postgres://${ROLE}:${password}@127.0.0.1:${session.port}/${DATABASE}`
    this.dir = place.files.dir
    this.#place = place
    this.#session = session
    this.#watch(session)
  }

  stop(): Promise<void> {
    return (this.#end ??= this.#leave())
  }

  async #leave(): Promise<void> {
    await this.#recovery
    await this.#session.settled.catch(() => undefined) // reported by #watch
    await this.#ensureGuarded()
    this.#session.hold.release()
  }

  /** Only a guardian stops the server after its last user: one that died a moment ago is replaced first. */
  async #ensureGuarded(): Promise<void> {
    const { files } = this.#place
    const state = readState(files.state)
    if (findPostmaster(files.data) === undefined) return
    if (state !== undefined && presenceOf(state.guardian) !== 'gone') return
    const session = await ensureServer(this.#place).catch(() => undefined)
    await session?.settled.catch(() => undefined)
    session?.hold.release()
  }

  #watch({ hold, settled }: Session): void {
    const { logger } = this.#place
    settled.catch((error: unknown) =>
      logger.error({ error }, 'other processes cannot attach to the embedded PostgreSQL'),
    )
    hold.onLost(() => {
      if (this.#end !== undefined) return
      this.#recovery ??= this.#recover().then((recovered) => {
        this.#recovery = undefined
        // Not before: one that is lost again already must find no recovery under way.
        if (recovered !== undefined) this.#watch(recovered)
      })
    })
  }

  /** Somebody killed the guardian, or the server died: start what is missing, on the same port if it is free. */
  async #recover(): Promise<Session | undefined> {
    const { logger } = this.#place
    const { port } = this.#session
    for (let attempt = 0; attempt < RECOVERIES_MAX && this.#end === undefined; attempt += 1) {
      try {
        const session = await ensureServer(this.#place)
        this.#session = session
        // A guardian that cannot start is worth another try later, not at once and for ever.
        await session.settled.catch((error: unknown) => {
          session.hold.release()
          throw error
        })
        if (session.port === port) logger.warn({ port }, 'the embedded PostgreSQL was brought back')
        else logger.error({ port, now: session.port }, 'the embedded PostgreSQL has a new port: restart this process')
        return session
      } catch (error) {
        logger.warn({ error, attempt }, 'the embedded PostgreSQL could not be brought back yet')
        await new Promise<void>((resolve) => void systemClock.timer(RECOVERY_WAIT_MS * 2 ** attempt, resolve))
      }
    }
    if (this.#end === undefined) logger.error({ port }, 'the embedded PostgreSQL is gone: restart this process')
    return undefined
  }
}
