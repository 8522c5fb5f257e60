// The PostgreSQL backend: the durable ledger. Ports over SQL functions, one round trip per call; time is the database's.
import { checkKnownOptions, invalidOption } from '../../core/names.ts'
import { Bell } from '../../runtime/bell.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Clock } from '../../runtime/clock.ts'
import { silentLogger } from '../../runtime/logger.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import type { Diagnosable, Served } from '../../store/diagnosis.ts'
import type { InDatabase } from '../../store/database.ts'
import type { Backend, Capabilities } from '../../store/ports.ts'
import type { Ledger } from './ledger-port.ts'
import { postgresBatches } from './batches.ts'
import type { BeatOptions } from './beat.ts'
import { BEAT_MAX_MS, checkUrl, Connections } from './connections.ts'
import type { ConnectionOptions } from './connections.ts'
import { createCycle } from './cycle.ts'
import { diagnosePostgres } from './diagnose.ts'
import { Doorbell } from './doorbell.ts'
import { createInside } from './inside.ts'
import { postgresLedger } from './ledger.ts'
import { ledgerEye } from './ledger-eye.ts'
import type { LedgerEye } from './ledger-eye.ts'
import { postgresJobs } from './jobs.ts'
import { postgresLimits } from './limits.ts'
import { Listener } from './listener.ts'
import { ensureSchema } from './migrate-start.ts'
import { postgresNotes } from './notes.ts'
import { postgresQuery } from './query.ts'
import { postgresQueues } from './queues.ts'
import { beginPartitions } from './retention.ts'
import { Reads } from './reads.ts'
import { postgresSchedules } from './schedules.ts'
import { postgresServers } from './servers.ts'
import type { PostgresStore } from './store.ts'
import { postgresWorkers } from './workers.ts'

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`; what it leaves out comes from PGHOST, PGUSER, PGPASSWORD … */
  readonly url: string
  /**
   * A streaming replica of that server, for reports: lists, counts, attempts, logs, the archive. What they say may lag as it
   * does; while it is away they come from `url`.
   */
  readonly replicaUrl?: string
  /** Where the tables are. Default `millrace`. */
  readonly schema?: string
  /** Connections for work, per process. Default 20; one for heartbeats, one for hints and two per worker come on top. */
  readonly poolMax?: number
  /** `auto` (default) brings the schema up to date at the start; `check` only refuses one that is not. */
  readonly migrate?: 'auto' | 'check'
  readonly applicationName?: string
  readonly logger?: Logger
  /** For tests: the clock behind timers; times in the store are always the database's. */
  readonly clock?: Clock
}

const POOL_MAX = 20
const REPLICA_POOL_MAX = 4
/** Shorter than for the primary: there is somebody else to ask. */
const REPLICA_CONNECT_TIMEOUT_MS = 2_000
const CONNECT_TIMEOUT_MS = 10_000
const STATEMENT_TIMEOUT_MS = 30_000
const LOCK_TIMEOUT_MS = 5_000

/** Nothing of the ledger may take effect later than this after its caller gave up on it (docs: hybrid protocol). */
const LEDGER_STATEMENT_TIMEOUT_MS = 5_000

export interface PostgresWithLedger {
  /** Starts and stops the ledger too. */
  readonly backend: Backend & Diagnosable & Served & InDatabase
  readonly ledger: Ledger
  /** For doctor and status. */
  readonly eye: LedgerEye
  /** For `createSessionLedger` in the heartbeat thread. */
  readonly session: BeatOptions
}

/** For the hybrid: the backend, and what its rules need beyond one. Up to `poolMax` connections more. */
export function postgresWithLedger(options: PostgresOptions): PostgresWithLedger {
  const { backend, store, connecting } = build(options)
  const guarded = new Connections({ ...connecting, statementTimeoutMs: LEDGER_STATEMENT_TIMEOUT_MS })
  return {
    ledger: postgresLedger({ ...store, connections: guarded }),
    eye: ledgerEye(store),
    session: beatOptions(connecting, store.schema),
    backend: {
      ...backend,
      workers: {
        ...backend.workers,
        async retire(id) {
          await backend.workers.retire(id)
          await guarded.endOrdered(id)
        },
      },
      async start() {
        await backend.start()
        guarded.open()
        await warnOfLooseCommits(store, guarded)
      },
      async stop() {
        await guarded.close()
        await backend.stop()
      },
    },
  }
}

/** A lease that a crash of the server takes back could be given out again. */
async function warnOfLooseCommits({ logger }: PostgresStore, connections: Connections): Promise<void> {
  const text = `select current_setting('synchronous_commit')`
  const [row] = await connections.run({ what: 'start', text }, [])
  if (row?.[0] !== 'off') return
  const advice = 'turn it on for this user: alter role … set synchronous_commit = on'
  logger.warn({}, `synchronous_commit is off: after a crash of PostgreSQL jobs may be lost or run twice; ${advice}`)
}

export function postgres(options: PostgresOptions): Backend & Diagnosable & Served & InDatabase {
  return build(options).backend
}

interface Built {
  readonly backend: Backend & Diagnosable & Served & InDatabase
  readonly store: PostgresStore
  readonly connecting: ConnectionOptions
}

function build(options: PostgresOptions): Built {
  const { url, schema = 'millrace', clock = systemClock, logger = silentLogger } = check(options)
  const connecting: ConnectionOptions = {
    url,
    poolMax: options.poolMax ?? POOL_MAX,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    applicationName: options.applicationName ?? 'millrace',
    prepare: true,
    logger,
  }
  const runtime = createRuntime({ clock, logger })
  const connections = new Connections(connecting)
  const reads = new Reads({ primary: connections, replica: replicaOf(options, connecting), logger })
  const self = runtime.newId()
  const doorbell: Doorbell = new Doorbell({
    clock,
    self,
    send: (payload) => listener.send(payload),
    onListeners: (some) => listener.want(some),
  })
  const back = new Bell()
  const listener = new Listener({
    connections,
    channel: `millrace:${schema}`,
    self,
    clock,
    random: runtime.random,
    logger,
    onPayload: (payload) => doorbell.heard(payload),
    onBack() {
      doorbell.ringEverything()
      back.ring()
    },
  })
  const store: PostgresStore = { connections, reads, schema, doorbell, clock, logger }
  const cycle = createCycle(store)
  const backend: Backend & Diagnosable & Served & InDatabase = {
    jobs: postgresJobs(store, cycle),
    query: postgresQuery(store),
    queues: postgresQueues(store),
    schedules: postgresSchedules(store),
    batches: postgresBatches(store),
    limits: postgresLimits(store),
    workers: postgresWorkers(store, cycle),
    notes: postgresNotes(store),
    wakeups: doorbell,
    // A standby that was promoted may not have what the old primary had confirmed.
    onBack: (hear) => back.listen(hear),
    capabilities: capabilitiesOf(connecting, schema),
    diagnose: diagnosePostgres(store, url),
    servers: postgresServers(store, url),
    databasePlace: () => ({ url, schema }),
    inside: createInside(schema),
    async start() {
      connections.open()
      reads.open()
      try {
        await connections.with('start', (client) =>
          ensureSchema({ client, url, schema, migrate: options.migrate ?? 'auto', logger }),
        )
        await beginPartitions(store)
      } catch (error) {
        await reads.close()
        await connections.close()
        throw error
      }
    },
    async stop() {
      // The last hint of a process that ends at once after its last insert.
      await doorbell.finish()
      await reads.close()
      if (!(await connections.close())) return
      doorbell.close()
      await listener.close()
    },
  }
  return { backend, store, connecting }
}

function replicaOf({ replicaUrl }: PostgresOptions, primary: ConnectionOptions): Connections | undefined {
  if (replicaUrl === undefined) return undefined
  return new Connections({
    ...primary,
    url: replicaUrl,
    poolMax: Math.min(primary.poolMax, REPLICA_POOL_MAX),
    connectTimeoutMs: REPLICA_CONNECT_TIMEOUT_MS,
    applicationName: `${primary.applicationName} reports`,
  })
}

function beatOptions(options: ConnectionOptions, schema: string): BeatOptions {
  return {
    url: options.url,
    schema,
    applicationName: options.applicationName,
    connectTimeoutMs: options.connectTimeoutMs,
    statementTimeoutMs: BEAT_MAX_MS,
  }
}

function capabilitiesOf(options: ConnectionOptions, schema: string): Capabilities {
  return {
    strictPriority: true,
    durable: true,
    transactional: true,
    atomicAcrossQueues: true,
    payloadSearch: true,
    orderedCalls: 2,
    // Each takes a connection of the pool.
    orderedInserts: 1,
    settlesApart: 'backlog',
    threadLiveness: { module: beatModule(), options: beatOptions(options, schema) },
  }
}

function beatModule(): string {
  const file = import.meta.url.endsWith('.ts') ? './beat.ts' : './beat.js'
  return new URL(file, import.meta.url).href
}

const KNOWN = ['url', 'replicaUrl', 'schema', 'poolMax', 'migrate', 'applicationName', 'logger', 'clock']

function check(options: PostgresOptions): PostgresOptions {
  checkKnownOptions(options, KNOWN, 'postgres')
  const { url, replicaUrl, poolMax = POOL_MAX, migrate = 'auto' } = options
  if (typeof url !== 'string' || url === '') throw invalidOption('url', url, "'postgres://user:password@host/database'")
  if (replicaUrl !== undefined) checkUrl(replicaUrl, 'replicaUrl')
  if (!Number.isInteger(poolMax) || poolMax < 1 || poolMax > 500) throw invalidOption('poolMax', poolMax, '1 … 500')
  if (migrate !== 'auto' && migrate !== 'check') throw invalidOption('migrate', migrate, "'auto' or 'check'")
  return options
}
