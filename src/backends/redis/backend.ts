// The Redis backend: everything in Redis, one script per call; time is the server's.
import { DEFAULTS } from '../../core/limits.ts'
import { checkKnownOptions, invalidOption } from '../../core/names.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Clock } from '../../runtime/clock.ts'
import { silentLogger } from '../../runtime/logger.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Diagnosable, Served } from '../../store/diagnosis.ts'
import type { Sweepable } from '../../store/tracking.ts'
import type { Backend, Capabilities, JobStore } from '../../store/ports.ts'
import { redisBatches } from './batches.ts'
import type { BeatOptions } from './beat.ts'
import { clusterJobs } from './cluster-jobs.ts'
import type { ClusterParts } from './cluster-jobs.ts'
import { diagnoseRedis } from './diagnose.ts'
import { redisHandOvers } from './hand-overs.ts'
import { createLink } from './ioredis-link.ts'
import { redisJobs } from './jobs.ts'
import { DEFAULT_PREFIX } from './keys.ts'
import { redisLimits } from './limits.ts'
import type { RedisServer } from './link.ts'
import { LiveRuns } from './live-runs.ts'
import { redisNotes } from './notes.ts'
import { createOutbox } from './outbox.ts'
import { redisQuery } from './query.ts'
import { redisQueues } from './queues.ts'
import { createRegistry } from './registry.ts'
import { redisSchedules } from './schedules.ts'
import { warnOfSettings } from './server-settings.ts'
import { serverOf } from './server-url.ts'
import { redisServers } from './servers.ts'
import { createStore, prepared } from './store.ts'
import type { RedisStore } from './store.ts'
import { createSweep } from './tracking.ts'
import { RedisWakeups } from './wakeups.ts'
import { redisWorkers } from './workers.ts'

export interface RedisOptions extends RedisServer {
  /** All keys begin with it. Default `millrace`. */
  readonly prefix?: string
  /** Shown by CLIENT LIST. Default `millrace`. */
  readonly applicationName?: string
  readonly logger?: Logger
  /** For tests: the clock behind timers; times in the store are always the server's. */
  readonly clock?: Clock
  /** For tests: the key that holds the time of the store, in milliseconds. */
  readonly clockKey?: string
}

const CONNECT_TIMEOUT_MS = 10_000
const SERVER_OPTIONS = ['url', 'cluster', 'sentinel', 'username', 'password', 'db', 'tls']
const OPTIONS = [...SERVER_OPTIONS, 'prefix', 'applicationName', 'logger', 'clock', 'clockKey']

export function redis(options: RedisOptions): Backend & Diagnosable & Served & Sweepable {
  const { prefix, applicationName, logger, clock, clockKey, ...server } = check(options)
  const name = applicationName ?? 'millrace'
  const link = createLink({ server, name, connectTimeoutMs: CONNECT_TIMEOUT_MS, logger: logger ?? silentLogger })
  const store = createStore({
    link,
    prefix: prefix ?? DEFAULT_PREFIX,
    clock: clock ?? systemClock,
    logger: logger ?? silentLogger,
    ...(clockKey !== undefined && { clockKey }),
  })
  const wakeups = new RedisWakeups(store)
  const beat: BeatOptions = { server, prefix: store.keys.prefix, name, connectTimeoutMs: CONNECT_TIMEOUT_MS }
  const runs = liveRuns(store)
  const cluster: ClusterParts | undefined = link.isCluster
    ? clusterParts(store, runs, (asked) => jobs.insert(asked))
    : undefined
  const jobs: JobStore = cluster === undefined ? redisJobs(store, runs) : clusterJobs(store, cluster)
  const query = redisQuery(store)
  let users = 0
  return {
    jobs,
    query,
    queues: redisQueues(store, cluster),
    schedules: redisSchedules(store, {
      insert: (asked) => jobs.insert(asked),
      read: async (id) => (await query.get([id]))[0] ?? null,
    }),
    batches: redisBatches(store, cluster?.outbox),
    limits: redisLimits(store),
    workers: redisWorkers(store),
    notes: redisNotes(store),
    wakeups,
    capabilities: capabilitiesOf(link.isCluster, beat),
    // On a Cluster the worker and the queue are in different slots.
    ...(!link.isCluster && { handOvers: redisHandOvers(store, runs) }),
    // Of the nodes of a Cluster nobody is told: a worker there doubts when its own calls fail.
    ...(!link.isCluster && { onBack: (listener: () => void) => link.onBack(listener) }),
    diagnose: diagnoseRedis(store),
    servers: redisServers(link, store.clock, server),
    sweepTracking: createSweep(store),
    async start() {
      users += 1
      if (users > 1) return link.connect()
      try {
        await link.connect()
        await wakeups.start()
        await warnOfSettings(link, store.logger)
        runs.start()
      } catch (error) {
        users -= 1
        wakeups.close()
        await link.close()
        throw error
      }
    },
    async stop() {
      users = Math.max(users - 1, 0)
      if (users > 0) return
      runs.stop()
      wakeups.close()
      await link.close()
    },
  }
}

function clusterParts(store: RedisStore, runs: LiveRuns, insert: JobStore['insert']): ClusterParts {
  return { outbox: createOutbox(store, insert), register: createRegistry(store), runs }
}

function liveRuns(store: RedisStore): LiveRuns {
  const mark = prepared(store, 'jobs.claim', 'mark')
  return new LiveRuns({
    clock: store.clock,
    async mark(queue, own) {
      await mark(queue, [queue, own.length, ...own.flatMap(({ id, lease }) => [id, lease])])
    },
  })
}

function capabilitiesOf(isCluster: boolean, beat: BeatOptions): Capabilities {
  return {
    strictPriority: false,
    durable: true,
    transactional: false,
    atomicAcrossQueues: !isCluster,
    payloadSearch: false,
    // On a Cluster a claim asks several nodes, one after the other.
    orderedCalls: isCluster ? 1 : 3,
    orderedInserts: isCluster ? 1 : 2,
    settlesApart: isCluster ? 'never' : 'backlog',
    threadLiveness: { module: beatModule(), options: beat },
    retention: { finishedMs: DEFAULTS.retentionFinishedRedisMs, failedMs: DEFAULTS.retentionFailedRedisMs },
  }
}

function beatModule(): string {
  const file = import.meta.url.endsWith('.ts') ? './beat.ts' : './beat.js'
  return new URL(file, import.meta.url).href
}

function check(options: RedisOptions): RedisOptions {
  checkKnownOptions(options, OPTIONS, 'redis')
  serverOf(options) // throws where the address is none
  const { prefix } = options
  // Braces would move the hash tag that keeps a queue in one slot.
  if (prefix !== undefined && !/^[\w.:-]{1,100}$/.test(prefix)) {
    throw invalidOption('prefix', prefix, 'letters, digits, `_`, `.`, `:` and `-`, at most 100')
  }
  return options
}
