// The built-in rules of the alerts as data: what each reads from the facts, its limits, what it means and what to do.
// docs/alerts.md and `millrace alerts rules` are written from here.
import type { AlertFacts, PoolFacts, QueueFacts, ServerFacts, Severity, StoreFacts } from './alert-facts.ts'
import { formatDuration } from './duration.ts'
import { DEFAULTS, LIMITS } from './limits.ts'
import { LANES } from './priority.ts'

/** Notices travel through this queue. No rule looks at it: an alert about its own delivery would go the same way. */
export const ALERT_QUEUE = 'millrace.alerts'
/** The kind of the jobs that deliver notices. */
export const NOTIFY_JOB = 'millrace.notify'

/** What a rule says about one queue, kind, schedule, server or pool. */
export interface Reading {
  readonly connection: string
  /** Of what it is about; unique within rule and connection. */
  readonly name: string
  readonly queue: string | null
  /** `edge`: between the limit and where it counts as over: nothing begins, nothing ends. `unknown`: as if not asked. */
  readonly state: 'over' | 'edge' | 'under' | 'unknown'
  readonly value: number
  readonly limit: number
  readonly text: string
}

export interface RuleTerms {
  readonly severity: Severity
  /** Over the limit for this long before it fires. */
  readonly forMs: number
  /** Under it for this long before it is over. */
  readonly recoverMs: number
  /** Told again this often while it fires and nobody has acknowledged it; null: told once. */
  readonly remindMs: number | null
  readonly limits: Readonly<Record<string, number | null>>
}

/** Null: switched off. */
export type TermsOf = (name: string) => RuleTerms | null

export type FactsPart = 'queues' | 'kinds' | 'schedules' | 'relay' | 'servers' | 'pools'

export type LimitUnit = 'count' | 'duration' | 'share'

export interface LimitKind {
  readonly unit: LimitUnit
  /** Null: without it this limit is not looked at. */
  readonly usual: number | null
  readonly says: string
  /** More is never counted. */
  readonly most?: number
}

export interface RuleKind {
  /** What may have terms of its own. */
  readonly about: 'queue' | 'kind' | 'schedule' | 'server' | 'pool'
  /** The facts it reads: while they are missing nothing of it changes. */
  readonly part: FactsPart
  readonly severity: Severity
  readonly forMs: number
  readonly recoverMs: number
  readonly limits: Readonly<Record<string, LimitKind>>
  readonly means: string
  readonly todo: string
  readonly read: (facts: AlertFacts, termsOf: TermsOf) => readonly Reading[]
}

const MINUTE_MS = 60_000
const WINDOW = formatDuration(DEFAULTS.alertWindowMs)
const count = (usual: number | null, says: string): LimitKind => ({ unit: 'count', usual, says })

export const ALERT_RULES = {
  depth: {
    about: 'queue',
    part: 'queues',
    severity: 'warning',
    forMs: 0,
    recoverMs: MINUTE_MS,
    limits: {
      max: count(DEFAULTS.alertDepth, 'ready jobs of the queue'),
      high: count(null, 'ready jobs of its high lane'),
      normal: count(null, 'ready jobs of its normal lane'),
      low: count(null, 'ready jobs of its low lane'),
    },
    means: 'More jobs are ready than the queue should ever hold: producers are faster than workers.',
    todo: 'Look at `millrace status`: do workers serve the queue, and are their slots busy? Busy: scale the pool or raise its concurrency. Not busy: look for a rate limit or a slow dependency with `millrace why`. A planned bulk load: silence it.',
    read: (facts, termsOf) => perQueue(facts, (queue, connection) => depths(queue, connection, termsOf)),
  },
  'oldest-ready': {
    about: 'queue',
    part: 'queues',
    severity: 'critical',
    forMs: 0,
    recoverMs: MINUTE_MS,
    limits: {
      max: { unit: 'duration', usual: DEFAULTS.alertOldestReadyMs, says: 'that the oldest ready job has waited' },
    },
    means: 'A job that could start has waited too long: the queue is starved or far behind.',
    todo: 'Is any worker serving the queue (`millrace status`)? If so, is it busy with jobs of higher priority or of another queue? Give the queue a pool of its own, or more processes.',
    read: (facts, termsOf) =>
      perQueue(facts, (queue, connection) => {
        const waitedMs = queue.paused ? 0 : (queue.oldestReadyMs ?? 0)
        const text = `the oldest ready job of queue ${queue.queue} has waited ${formatDuration(waitedMs)}${crew(queue)}`
        return above(about(queue.queue, connection, queue.queue), waitedMs, termsOf(queue.queue)?.limits['max'], text)
      }),
  },
  'nothing-processing': {
    about: 'queue',
    part: 'queues',
    severity: 'critical',
    forMs: DEFAULTS.alertStalledForMs,
    recoverMs: 30_000,
    limits: {},
    means: 'Jobs are ready, none runs, and none was started or ended: nobody works on this queue.',
    todo: 'Start or restart workers: `millrace workers ls`, then `millrace work --queue …` or the supervisor. If workers are alive, `millrace why <job id>` says what keeps them from taking a job.',
    read: (facts, termsOf) =>
      perQueue(facts, (queue, connection) => {
        if (termsOf(queue.queue) === null) return []
        const stalled = !queue.paused && queue.isStalled
        const state = stalled === null ? 'unknown' : stalled ? 'over' : 'under'
        const text = `${queue.ready} jobs of queue ${queue.queue} wait and nothing processes them${crew(queue)}`
        return [{ ...about(queue.queue, connection, queue.queue), state, value: queue.ready, limit: 0, text }]
      }),
  },
  'dead-letters': {
    about: 'queue',
    part: 'queues',
    severity: 'warning',
    forMs: 0,
    recoverMs: MINUTE_MS,
    limits: {
      max: count(DEFAULTS.alertDeadLetters, 'dead letters of the queue'),
      growth: count(DEFAULTS.alertDeadLetterGrowth, `new dead letters in ${WINDOW}`),
    },
    means:
      'Jobs have failed for good and wait for somebody to look at them, or they fail at a rate that needs one now.',
    todo: '`millrace dead ls --queue …` groups what failed; fix the cause, then `millrace dead replay --error "…"`. What nobody needs: `millrace dead prune`.',
    read: (facts, termsOf) =>
      perQueue(facts, (queue, connection) => {
        const { max, growth } = termsOf(queue.queue)?.limits ?? {}
        const subject = about(queue.queue, connection, queue.queue)
        const { deadLetters, recent } = queue
        const all = above(subject, deadLetters, max, `queue ${queue.queue} has ${deadLetters} dead letters`)
        const more = `${recent.failed} jobs of queue ${queue.queue} failed for good within ${WINDOW}`
        return worst([...above(subject, recent.failed, growth, more), ...all])
      }),
  },
  'failure-ratio': {
    about: 'queue',
    part: 'queues',
    severity: 'warning',
    forMs: MINUTE_MS,
    recoverMs: 2 * MINUTE_MS,
    limits: {
      max: {
        unit: 'share',
        usual: DEFAULTS.alertFailureRatio,
        says: `of the jobs that ended in ${WINDOW}, failed for good`,
      },
      sample: count(DEFAULTS.alertFailureSample, 'jobs that must have ended before the share means anything'),
    },
    means: 'Too large a share of the jobs that end do so as dead letters.',
    todo: 'Usually a deployment or a dependency: compare the start of the alert with your last release, read one error with `millrace dead show`, pause the queue (`millrace queues pause`) while you fix it, then replay.',
    read: (facts, termsOf) =>
      perQueue(facts, (queue, connection) => {
        const { max, sample } = termsOf(queue.queue)?.limits ?? {}
        const { completed, failed } = queue.recent
        const ended = completed + failed
        const share = ended === 0 || ended < (sample ?? 0) ? 0 : failed / ended
        const text = `${percent(share)} of ${ended} jobs of queue ${queue.queue} failed for good within ${WINDOW}`
        return above(about(queue.queue, connection, queue.queue), share, max, text)
      }),
  },
  'kind-failed': {
    about: 'kind',
    part: 'kinds',
    severity: 'critical',
    forMs: 0,
    recoverMs: 0,
    limits: {
      max: { ...count(0, `dead letters of the kind in ${WINDOW}`), most: LIMITS.alertKindFailuresMax - 1 },
    },
    means: 'A kind of job that you named as one that must not fail has failed for good.',
    todo: '`millrace dead ls --name …` lists them with their errors. Fix the cause, then replay.',
    read: (facts, termsOf) =>
      perStore(facts, ({ kinds, connection }) =>
        (kinds ?? []).flatMap(({ kind, failed, error }) => {
          const why = error === null ? '' : `; the newest: ${error}`
          const text = `${failed} jobs of kind ${kind} failed for good within ${WINDOW}${why}`
          return above(about(kind, connection, null), failed, termsOf(kind)?.limits['max'], text)
        }),
      ),
  },
  'redis-memory': {
    about: 'server',
    part: 'servers',
    severity: 'warning',
    forMs: MINUTE_MS,
    recoverMs: MINUTE_MS,
    limits: { max: { unit: 'share', usual: DEFAULTS.alertRedisMemoryShare, says: 'of `maxmemory` in use' } },
    means: 'Redis comes near its memory limit; at the limit it refuses writes.',
    todo: '`millrace doctor` shows what it says of itself. Work off the queues, shorten the retention, lower `window` (hybrid), or raise `maxmemory`.',
    read: (facts, termsOf) =>
      perServer(facts, ['redis'], (server, connection) => {
        const { memoryUsedBytes: used, memoryMaxBytes: max } = server
        if (!server.isUp || used === null) return [{ ...about('redis', connection, null), ...UNKNOWN }]
        const share = max === null || max === 0 ? 0 : used / max
        const text = `Redis uses ${percent(share)} of its memory (${megabytes(used)} of ${megabytes(max ?? 0)})`
        return above(about('redis', connection, null), share, termsOf('redis')?.limits['max'], text)
      }),
  },
  'relay-lag': {
    about: 'queue',
    part: 'relay',
    severity: 'warning',
    forMs: MINUTE_MS,
    recoverMs: MINUTE_MS,
    limits: {
      max: { unit: 'duration', usual: DEFAULTS.alertRelayLagMs, says: 'that a ready job has waited for its token' },
    },
    means: 'Ready jobs wait in PostgreSQL although there is room for them in Redis: the relay does not keep up.',
    todo: 'The relay runs in every process that works, with maintenance on: is there one? `millrace doctor` says what holds it up. Jobs are not lost, and workers fall back to PostgreSQL when Redis is away.',
    read: (facts, termsOf) =>
      perStore(facts, ({ relay, connection }) =>
        (relay ?? []).flatMap(({ queue, lagMs }) => {
          if (queue === ALERT_QUEUE) return []
          const text = `a ready job of queue ${queue} has waited ${formatDuration(Math.round(lagMs))} for its token in Redis`
          return above(about(queue, connection, queue), lagMs, termsOf(queue)?.limits['max'], text)
        }),
      ),
  },
  'missed-schedule': {
    about: 'schedule',
    part: 'schedules',
    severity: 'warning',
    forMs: 0,
    recoverMs: 0,
    limits: {
      max: { unit: 'duration', usual: DEFAULTS.alertScheduleLateMs, says: 'since a tick that should have been fired' },
    },
    means: 'A recurring job was not enqueued when it should have been: no scheduler runs, or it fails.',
    todo: 'Schedulers run in every process that works, unless `maintenance: false`. Start one, look at its log for "could not be fired", then `millrace schedules run …` if the run cannot wait.',
    read: (facts, termsOf) =>
      perStore(facts, ({ schedules, connection }) =>
        (schedules ?? []).flatMap(({ schedule, lateMs }) => {
          const text = `schedule ${schedule} should have run ${formatDuration(lateMs)} ago`
          return above(about(schedule, connection, null), lateMs, termsOf(schedule)?.limits['max'], text)
        }),
      ),
  },
  'crash-loop': {
    about: 'pool',
    part: 'pools',
    severity: 'critical',
    forMs: 0,
    recoverMs: MINUTE_MS,
    limits: {},
    means: 'Worker processes of a pool end again and again soon after their start.',
    todo: 'Read the last lines of the log of that pool; usually a bad release or a missing environment variable. Roll back, then restart the pool.',
    read: ({ pools }, termsOf) =>
      worstFirst(pools ?? []).flatMap(({ pool, host, isCrashLooping }): readonly Reading[] => {
        if (termsOf(pool) === null) return []
        const state = isCrashLooping ? 'over' : 'under'
        const text = `worker processes of pool ${pool} on ${host} end again and again soon after their start`
        return [{ ...about(`${host}/${pool}`, 'default', null), state, value: 1, limit: 0, text }]
      }),
  },
  'postgres-down': storeDown(['postgres'], {
    means: 'PostgreSQL does not answer this supervisor. Nothing is enqueued, claimed or settled until it does.',
    todo: 'Is the server up, and is there a failover under way? Workers reconnect by themselves and no acknowledged job is lost; there is nothing to restart here.',
  }),
  'redis-down': storeDown(['redis'], {
    means:
      'Redis does not answer this supervisor. With PostgreSQL beside it work goes on from there, slower; with Redis alone nothing is enqueued, claimed or settled.',
    todo: 'Bring Redis back; it may come back empty beside PostgreSQL, which repairs it. With Redis alone its data is your jobs: keep its files.',
  }),
  'store-down': storeDown(['store'], {
    means: 'A store of another kind does not answer this supervisor.',
    todo: 'Look at what the error says. Nothing is enqueued, claimed or settled until it answers.',
  }),
} as const satisfies Readonly<Record<string, RuleKind>>

export type RuleName = keyof typeof ALERT_RULES
export const RULE_NAMES = Object.keys(ALERT_RULES) as readonly RuleName[]

/** Looked at by every supervisor for itself and told without the store. */
export const DIRECT_RULES: ReadonlySet<string> = new Set<RuleName>(['postgres-down', 'redis-down', 'store-down'])

type Subject = Pick<Reading, 'connection' | 'name' | 'queue'>

const about = (name: string, connection: string, queue: string | null): Subject => ({ name, connection, queue })
const UNKNOWN = { state: 'unknown', value: 0, limit: 0, text: '' } as const

/** Nothing where there is no such limit, which is also how a rule is switched off. */
function above(subject: Subject, value: number, limit: number | null | undefined, text: string): readonly Reading[] {
  if (limit === null || limit === undefined) return []
  const state = value > limit ? 'over' : value > limit * DEFAULTS.alertRecoverShare ? 'edge' : 'under'
  return [{ ...subject, state, value, limit, text }]
}

const ORDER: readonly Reading['state'][] = ['over', 'edge', 'under', 'unknown']

/** Of several about the same: one alert. */
function worst(readings: readonly Reading[]): readonly Reading[] {
  return [...readings].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state)).slice(0, 1)
}

function depths(queue: QueueFacts, connection: string, termsOf: TermsOf): readonly Reading[] {
  const { limits = {} } = termsOf(queue.queue) ?? {}
  // Whoever pauses a queue wants it to wait.
  const ready = queue.paused ? 0 : queue.ready
  const text = `queue ${queue.queue} has ${ready} jobs ready${crew(queue)}`
  const lanes = LANES.flatMap((lane, index) => {
    const inLane = queue.paused ? 0 : queue.lanes?.[index]
    const subject = about(`${queue.queue}/${lane}`, connection, queue.queue)
    if (limits[lane] === null || limits[lane] === undefined) return []
    if (inLane === undefined) return [{ ...subject, ...UNKNOWN }]
    return above(subject, inLane, limits[lane], `the ${lane} lane of queue ${queue.queue} has ${inLane} jobs ready`)
  })
  return [...above(about(queue.queue, connection, queue.queue), ready, limits['max'], text), ...lanes]
}

function storeDown(servers: readonly ServerFacts['server'][], words: Pick<RuleKind, 'means' | 'todo'>): RuleKind {
  return {
    about: 'server',
    part: 'servers',
    severity: 'critical',
    forMs: 10_000,
    recoverMs: 10_000,
    limits: {},
    ...words,
    read: (facts, termsOf) =>
      perServer(facts, servers, ({ server, isUp, error }, connection) => {
        if (termsOf(server) === null) return []
        const named = { postgres: 'PostgreSQL', redis: 'Redis', store: 'the store' }[server]
        const text = `${named} does not answer${error === null ? '' : `: ${error}`}`
        return [{ ...about(server, connection, null), state: isUp ? 'under' : 'over', value: 1, limit: 0, text }]
      }),
  }
}

/** Two supervisors of one host may have a pool of one name: one that is well must not hide the other. */
function worstFirst(pools: readonly PoolFacts[]): readonly PoolFacts[] {
  return [...pools].sort((a, b) => Number(b.isCrashLooping) - Number(a.isCrashLooping))
}

function perStore(facts: AlertFacts, read: (store: StoreFacts) => readonly Reading[]): readonly Reading[] {
  return facts.stores.flatMap(read)
}

function perQueue(
  facts: AlertFacts,
  read: (queue: QueueFacts, connection: string) => readonly Reading[],
): readonly Reading[] {
  return perStore(facts, ({ queues, connection }) =>
    (queues ?? []).flatMap((queue) => (queue.queue === ALERT_QUEUE ? [] : read(queue, connection))),
  )
}

function perServer(
  facts: AlertFacts,
  which: readonly ServerFacts['server'][],
  read: (server: ServerFacts, connection: string) => readonly Reading[],
): readonly Reading[] {
  return perStore(facts, ({ servers, connection }) =>
    (servers ?? []).flatMap((server) => (which.includes(server.server) ? read(server, connection) : [])),
  )
}

function crew({ workers, running }: QueueFacts): string {
  return workers === null ? '' : `; ${workers} live workers, ${running} running`
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / (1024 * 1024))} MB`
}
