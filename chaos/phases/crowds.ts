// Too many at once: jobs that are due in the same moment, and workers that lose their store together.
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { timeliness } from '../checks/due.ts'
import { bounded } from '../checks/memory.ts'
import { reconnected } from '../checks/reconnect.ts'
import { wait } from '../scenario.ts'
import type { Scenario, Struck, Times } from '../scenario.ts'
import { CONCURRENCY as SLOTS } from '../stage.ts'
import type { Member, Stage } from '../stage.ts'
import { QUEUE } from '../systems/millrace.ts'

const EVERYWHERE = ['postgres', 'redis', 'hybrid'] as const
/** To enqueue them, by their number. */
const LEAD_MS = 2_000
const LEAD_PER_JOB_MS = 0.15
const DRAIN_MIN_MS = 60_000
const DRAIN_PER_JOB_MS = 1
const LOOK_MS = 100
/** These take every slot for a while, so that the others pile up behind them: due a little sooner, since in one millisecond there is no order. */
const LONG_MS = 3_000
const LONG_LEAD_MS = 500
const LANES = ['high', 'normal', 'low'] as const

/** As many as are started below. */
const PROCESSES = 4
/** The default: no job waits behind a long one. */
const CONCURRENCY = 10
const CONNECTIONS_MAX = 600
/** So long after the store is back jobs may wait. */
const CALM_MS = 5_000
const REACTION_S = 5

export const CROWD_SCENARIOS: readonly Scenario[] = [
  {
    name: 'due-at-once',
    says: 'fifty thousand jobs are due in the same millisecond (a million with --full)',
    backends: EVERYWHERE,
    peers: 'asked',
    goesOn: true,
    ratePerS: 0,
    strike: comeDue,
  },
  {
    name: 'workers-reconnect',
    says: 'a hundred workers in four processes lose their store at once: PostgreSQL is restarted, or Redis where there is nothing else',
    backends: EVERYWHERE,
    peers: 'never',
    ratePerS: 200,
    ttl: 'long',
    crew: ({ crowd }) => [{ workers: crowd / PROCESSES, concurrency: CONCURRENCY }],
    connectionsMax: CONNECTIONS_MAX,
    async strike({ servers, place, workers, startWorker }, { phaseMs }) {
      // Two at a time: each starts as many threads as it has workers.
      await startWorker()
      await Promise.all([startWorker(), startWorker()])
      const before = countOf(workers, 'open')
      const madeBefore = countOf(workers, 'made')
      const atMs = Date.now()
      await (place.backend === 'redis' ? servers.redis.restart() : servers.postgres.restart('fast'))
      const backMs = Date.now()
      await wait(CALM_MS + phaseMs)
      const [after, made] = [countOf(workers, 'open'), countOf(workers, 'made') - madeBefore]
      const facts = { before, after, made, calmMs: backMs + CALM_MS }
      return { atMs, backMs, robbed: [], findings: (books) => reconnected(books, facts) }
    },
    promise: { recoveryMaxS: REACTION_S },
  },
]

/** Connections to the store that goes away. */
function countOf(workers: readonly Member[], what: 'open' | 'made'): number {
  return workers.reduce((sum, { link: { postgres, redis } }) => sum + (postgres ?? redis)![what], 0)
}

async function comeDue(stage: Stage, { dueJobs }: Times): Promise<Struck> {
  const { workers, system, place } = stage
  const peaks = (): Promise<number[]> => Promise.all(workers.map((worker) => worker.rssMaxBytes()))
  const rssBefore = await peaks()
  const dueMs = Date.now() + LEAD_MS + dueJobs * LEAD_PER_JOB_MS
  const long = SLOTS * workers.length
  await stage.enqueueMany(long, { longMs: LONG_MS, dueMs: dueMs - LONG_LEAD_MS })
  await stage.enqueueMany(dueJobs - long, { longMs: 0, dueMs })
  const earlyMs = dueMs - Date.now()
  if (earlyMs < 0) throw new Error(`they were due ${-earlyMs} ms before all were there`)
  await wait(earlyMs)
  const seen: number[] = []
  const deadlineMs = performance.now() + DRAIN_MIN_MS + dueJobs * DRAIN_PER_JOB_MS
  for (let left = dueJobs; left > 0 && performance.now() < deadlineMs;) {
    if (place.backend === 'hybrid') seen.push(await tokensIn(stage))
    const { waiting, running } = await system.inspect(place)
    left = waiting + running
    await wait(LOOK_MS)
  }
  const crammed = {
    rssBefore,
    rssAfter: await peaks(),
    ...(place.backend === 'hybrid' && { tokens: { seen, max: HYBRID_TIMES.window } }),
  }
  return {
    atMs: dueMs,
    backMs: Date.now(),
    robbed: [],
    findings(books) {
      // How late the last one is depends on the machine.
      const [time, memory] = [timeliness(books, Infinity), bounded(crammed)]
      const { late: _, ...figures } = { ...time.figures, ...memory.figures }
      return { figures, broken: [...time.broken, ...memory.broken] }
    },
  }
}

async function tokensIn({ servers: { redis } }: Stage): Promise<number> {
  const lengths = LANES.map((lane) => redis.command('LLEN', `millrace:{${QUEUE}}:${lane}`))
  return (await Promise.all(lengths)).reduce((sum: number, length) => sum + Number(length), 0)
}
