// Does a job cost more because many others wait? The same number of jobs is worked off twice: as the whole of a backlog,
// and from the front of one that is ten times as long. The crew is not stopped in between the measured jobs and the others.
import { setTimeout as pause } from 'node:timers/promises'
import { fillWithin } from '../backlog.ts'
import { startClocks } from '../clocks.ts'
import type { Clocks } from '../clocks.ts'
import type { Crew } from '../crew.ts'
import { CAP_MS } from '../scenario.ts'
import type { Scenario, Stage, Values } from '../scenario.ts'
import { checkDispatched, warmUp } from '../warm-up.ts'

const TIMES = 10
const CONCURRENCY = 100
/** Who is slower to fill has a shorter backlog, and the report says how long it was. */
const FILL_MAX_MS = 120_000
const ASK_EVERY_MS = 10

export const longBacklog: Scenario = {
  name: 'drain-100-1m',
  says: `work off a tenth of a backlog of 1 000 000 no-op jobs, concurrency ${CONCURRENCY}, and the ratio to a backlog of just that tenth`,
  aim: 'throughput',
  jobs: { redis: 100_000, postgres: 100_000 },
  seconds: { redis: 50, postgres: 55 },
  usual: [],
  async run(stage, jobs) {
    const crew = await stage.crew({ concurrency: CONCURRENCY })
    const before = await warmUp(stage, crew, jobs)
    await crew.stop()
    const usual = await takeFrom(stage, crew, { backlog: jobs, jobs, before })
    await crew.stop()
    const long = await takeFrom(stage, crew, { backlog: jobs * TIMES, jobs, before: before + usual.done })
    const { jobs_per_s: usualRate = 0 } = usual.values
    const { jobs_per_s: rate = 0 } = long.values
    return {
      values: {
        ...long.values,
        usual_jobs_per_s: usualRate,
        ratio: rate / usualRate,
        backlog_jobs: long.backlog,
      },
      ...(long.done < jobs && { cappedAtJobs: long.done }),
    }
  },
}

interface Take {
  readonly backlog: number
  /** How many of them are measured. */
  readonly jobs: number
  /** Handler starts of the crew so far. */
  readonly before: number
}

interface Taken {
  readonly values: Values
  readonly done: number
  /** As long as it has become. */
  readonly backlog: number
}

async function takeFrom(stage: Stage, crew: Crew, { backlog, jobs, before }: Take): Promise<Taken> {
  const left = await stage.system.unfinished()
  await fillWithin(stage, backlog - left, FILL_MAX_MS)
  const waiting = await stage.system.unfinished()
  await checkDispatched(stage, waiting)
  await stage.database?.analyze()
  const clocks = await startClocks({ stage, crew, isWorkHere: false })
  await crew.start()
  await crew.handled(before + jobs, CAP_MS)
  const done = waiting - (await untilLeft(stage, clocks, waiting - jobs))
  if (done === 0) throw new Error(`no job was finished within ${CAP_MS / 1000} s`)
  return { values: await clocks.values(done), done, backlog: waiting }
}

/** Answers how many jobs were left when the clocks were stopped: so many, or more if the time was over. */
async function untilLeft({ system }: Stage, clocks: Clocks, few: number): Promise<number> {
  for (;;) {
    // Before the question: to count a million takes a while, in which the work goes on.
    clocks.stop()
    const left = await system.unfinished()
    if (left <= few || clocks.elapsedMs() >= CAP_MS) return left
    await pause(ASK_EVERY_MS)
  }
}
