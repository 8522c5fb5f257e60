// `hybrid(...)`: PostgreSQL and Redis together. What each half is: ports.ts; the protocol between them: docs/hybrid.md.
import { checkKnownOptions, invalidOption } from '../../core/names.ts'
import { silentLogger } from '../../runtime/logger.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { threadsMonoMs } from '../../runtime/thread.ts'
import type { Diagnosable, Dispatching, Served } from '../../store/diagnosis.ts'
import type { InDatabase } from '../../store/database.ts'
import type { Backend } from '../../store/ports.ts'
import type { Sweepable } from '../../store/tracking.ts'
import { postgresWithLedger } from '../postgres/backend.ts'
import type { PostgresOptions } from '../postgres/backend.ts'
import { createLink } from '../redis/ioredis-link.ts'
import type { RedisServer } from '../redis/link.ts'
import { redisServers } from '../redis/servers.ts'
import type { HybridBeatOptions } from './beat.ts'
import { composeHybrid } from './compose.ts'
import { diagnoseHybrid } from './diagnose.ts'
import { redisEye } from './redis-eye.ts'
import { redisRace } from './redis-race.ts'
import type { Session } from './session.ts'
import { dispatchStateOf, survey } from './survey.ts'
import type { Surveyor } from './survey.ts'
import { HYBRID_TIMES } from './times.ts'
import type { HybridTimes } from './times.ts'
import { createHybridSweep } from './tracking.ts'

/** How a job becomes the run of a worker: with its token alone, or put down in PostgreSQL first. */
export type ClaimMode = 'token' | 'confirmed'

export interface HybridOptions {
  readonly postgres: Omit<PostgresOptions, 'logger' | 'clock'>
  readonly redis: RedisServer
  /** Before all keys in Redis. Default `millrace`. */
  readonly prefix?: string
  /** For all queues, or by name. Default `token`. */
  readonly claims?: ClaimMode | Readonly<Record<string, ClaimMode>>
  /** Jobs of a lane that wait in Redis at once; the others wait in PostgreSQL. Default 10 000. */
  readonly window?: number
  /** Jobs of all lanes of all queues that wait in Redis at once. Default 100 000. */
  readonly windowTotal?: number
  readonly logger?: Logger
}

const CONNECT_TIMEOUT_MS = 5_000
const WINDOW_MAX = 1_000_000

export function hybrid(options: HybridOptions): Backend & Diagnosable & Dispatching & Served & InDatabase & Sweepable {
  const { claims = 'token', prefix = 'millrace', logger = silentLogger } = check(options)
  const runtime = createRuntime({ logger })
  const { window = HYBRID_TIMES.window, windowTotal = HYBRID_TIMES.windowTotal } = options
  const times: HybridTimes = { ...HYBRID_TIMES, window, windowTotal }
  const { backend, ledger, eye: ledgerEye, session } = postgresWithLedger({ ...options.postgres, logger })
  const link = createLink({
    server: options.redis,
    name: options.postgres.applicationName ?? 'millrace',
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    logger,
  })
  const raceEye = redisEye({ link, prefix })
  const over = composeHybrid({
    runtime,
    store: backend,
    ledger,
    race: redisRace({ link, prefix }),
    times,
    isConfirmed: (queue) => (typeof claims === 'string' ? claims : claims[queue]) === 'confirmed',
    threadMonoMs: threadsMonoMs,
    eye: raceEye,
    threadOf: ({ worker, inFlight }: Session) => {
      const { markAfterMs, markEveryMs } = times
      const beat: HybridBeatOptions = { session, worker, inFlight: inFlight.shared, markAfterMs, markEveryMs }
      return { module: beatModule(), options: beat }
    },
  })
  const raceServers = redisServers(link, runtime.clock, options.redis)
  const surveyor: Surveyor = { hybrid: over.hybrid, ledgerEye, raceEye }
  return {
    ...over.backend,
    diagnose: async () => [...(await backend.diagnose()), ...(await diagnoseHybrid(surveyor))],
    databasePlace: () => backend.databasePlace(),
    sweepTracking: createHybridSweep({ link, prefix, connect: () => over.hybrid.connect() }),
    dispatching: async () => (await survey(surveyor)).map(dispatchStateOf),
    servers: async () => (await Promise.all([backend.servers(), raceServers()])).flat(),
  }
}

function beatModule(): string {
  const file = import.meta.url.endsWith('.ts') ? './beat.ts' : './beat.js'
  return new URL(file, import.meta.url).href
}

function check(options: HybridOptions): HybridOptions {
  checkKnownOptions(options, ['postgres', 'redis', 'prefix', 'claims', 'window', 'windowTotal', 'logger'], 'hybrid')
  const { prefix = 'millrace', window = HYBRID_TIMES.window, windowTotal = HYBRID_TIMES.windowTotal } = options
  if (typeof prefix !== 'string' || !/^[\w.:-]{1,100}$/.test(prefix))
    throw invalidOption('prefix', prefix, "'millrace'")
  for (const [name, tokens] of Object.entries({ window, windowTotal })) {
    if (!Number.isInteger(tokens) || tokens < 1 || tokens > WINDOW_MAX) throw invalidOption(name, tokens, '1 … 1000000')
  }
  return options
}
