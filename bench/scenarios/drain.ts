// How fast a backlog is worked off with a handler that does nothing: the cost of the system itself. The
// clock runs from the order to start working until the store has no unfinished job. A small backlog is worked off before,
// so that neither the process nor the store is new.
import { fill } from '../backlog.ts'
import { startClocks } from '../clocks.ts'
import { untilFinished } from '../finish.ts'
import { shown } from '../page/names.ts'
import { CAP_MS } from '../scenario.ts'
import type { Measurement, Scenario, Stage } from '../scenario.ts'
import { OURS } from '../system.ts'
import { UNSET_SCENARIO, WINDOW_DEFAULT } from '../window.ts'
import { checkDispatched, warmUp } from '../warm-up.ts'

/** The fastest need more than half a second for so many. Of 50 000 a start and an end were a sixth of the time, and every pause of a collector showed. */
const JOBS = 80_000
/** Of what the floors are about: one takes a second or two, and a shared machine moves it by a quarter. */
const RUNS = 5
/** Of ours whose floors are near; the others are farther from one than their runs are from each other. */
const RUNS_OF = { 'millrace:postgres': RUNS, 'millrace:hybrid': RUNS }
/** Of those who do a few thousand jobs a second, a backlog is stopped by time. */
const SLOW_S = 11

/** The same in the first minute of a database, before anybody has analysed its tables; nothing else differs. */
export const drainFresh: Scenario = {
  name: 'drain-100-fresh',
  says: 'drain-100 on tables that nobody has analysed, as in the first minute after a deployment',
  aim: 'throughput',
  jobs: { postgres: JOBS },
  seconds: { postgres: 5.5, slow: SLOW_S },
  usual: [],
  run: (stage, jobs) => measureDrain(stage, jobs, { concurrency: 100, processes: 1, isAnalysed: false }),
}

export function drain(concurrency: number, processes = 1): Scenario {
  const each = processes === 1 ? '' : ` in each of ${processes} processes`
  return {
    name: processes === 1 ? `drain-${concurrency}` : `drain-${concurrency}x${processes}`,
    says: `work off a backlog of no-op jobs, concurrency ${concurrency}${each}`,
    aim: 'throughput',
    // Several processes cannot share a memory. Each has as many to do as a single one: it compiles itself anew.
    jobs: { ...(processes === 1 && { memory: 200_000 }), redis: JOBS * processes, postgres: JOBS * processes },
    ...(processes > 1 && { beside: `drain-${concurrency}` }),
    seconds: { memory: 2, redis: 2.5 + 1.5 * processes, postgres: 2.5 + 1.5 * processes, slow: SLOW_S },
    ...(concurrency !== 100 ? { usual: [] } : { runsOf: RUNS_OF, ...(processes > 1 && { usual: [OURS] }) }),
    run: (stage, jobs) => measureDrain(stage, jobs, { concurrency, processes, isAnalysed: true }),
  }
}

/** The hybrid as it is out of the box: what is over the window waits in PostgreSQL, and is brought over while the work goes on. */
export const drainUnset: Scenario = {
  ...drain(100),
  name: UNSET_SCENARIO,
  says: `drain-100 of the hybrid with nothing set: ${shown(WINDOW_DEFAULT)} jobs of the backlog are in Redis, the rest goes through PostgreSQL`,
  jobs: { postgres: JOBS },
  only: ['millrace:hybrid', 'millrace:hybrid-no-aof'],
  seconds: { postgres: 5 },
  runsOf: {},
  beside: 'drain-100',
  isUnset: true,
}

export const drainSlowLink: Scenario = {
  ...drain(100),
  name: 'drain-100-1ms',
  says: 'drain-100 with 1 ms added to every round trip to the servers, by a proxy in a process of its own',
  // What lives in memory has no network.
  jobs: { redis: JOBS, postgres: JOBS },
  runsOf: {},
  usual: [],
  addedMs: 1,
}

export const drainLarge: Scenario = {
  ...drain(100),
  name: 'drain-100-8k',
  says: 'drain-100 with 8 KiB of payload',
  jobs: { memory: 50_000, redis: 20_000, postgres: 20_000 },
  runsOf: {},
  usual: [],
  bodyBytes: 8192,
}

export interface DrainOptions {
  readonly concurrency: number
  readonly processes: number
  readonly isAnalysed: boolean
  readonly handlerMs?: number
  /** Of the first round of the warm-up, where they take time. */
  readonly warmUpJobs?: number
}

export async function measureDrain(stage: Stage, jobs: number, options: DrainOptions): Promise<Measurement> {
  const { system, database } = stage
  const crew = await stage.crew(options)
  const before = await warmUp(stage, crew, jobs, options.warmUpJobs)
  await crew.stop()
  await fill(stage, jobs)
  await checkDispatched(stage, jobs)
  if (options.isAnalysed) await database?.analyze()
  const clocks = await startClocks({ stage, crew, isWorkHere: false })
  await crew.start()
  const left = await untilFinished({ system, crew, clocks, handled: before + jobs, capMs: CAP_MS })
  const values = { ...(await clocks.values(jobs - left)), ...(stage.link && { link_ms: await stage.link.meanMs() }) }
  return { values, ...(left > 0 && { cappedAtJobs: jobs - left }) }
}
