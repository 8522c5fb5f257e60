// The classic killer of queues in a database: somebody holds a snapshot, nothing that dies can be cleaned
// away, and every claim walks over the dead. The same jobs are worked off in rounds without and with a held
// snapshot, each in a fresh database with a fresh worker process; what counts is the last round.
import { fill } from '../backlog.ts'
import { startClocks } from '../clocks.ts'
import { untilFinished } from '../finish.ts'
import { CAP_MS } from '../scenario.ts'
import type { Scenario, Stage } from '../scenario.ts'

const ROUNDS = 6
const CONCURRENCY = 100

export const heldTransaction: Scenario = {
  name: 'held-transaction',
  says: `rate of the last of ${ROUNDS} rounds while a snapshot is held, and its ratio to the same without`,
  aim: 'throughput',
  jobs: { other: 180_000 },
  async run(stage, jobs) {
    const roundJobs = Math.ceil(jobs / ROUNDS)
    const free = await workInRounds(stage, roundJobs)
    const second = await stage.another()
    await second.database!.holdSnapshot()
    const held = await workInRounds(second, roundJobs)
    await second.close()
    const done = Math.min(free.done, held.done)
    return {
      values: { jobs_per_s: held.lastRate, unheld_jobs_per_s: free.lastRate, ratio: held.lastRate / free.lastRate },
      ...(done < roundJobs * ROUNDS && { cappedAtJobs: done }),
    }
  },
}

interface Rounds {
  /** Jobs per second of the last round. */
  readonly lastRate: number
  readonly done: number
}

async function workInRounds(stage: Stage, roundJobs: number): Promise<Rounds> {
  const { system, database } = stage
  const crew = await stage.crew({ concurrency: CONCURRENCY })
  let lastRate = 0
  let done = 0
  let left = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    // Every round begins with the same backlog, also when the time of the one before was over too early.
    await fill(stage, roundJobs - left)
    const clocks = await startClocks({ database, crew, isWorkHere: false })
    await crew.start()
    left = await untilFinished({ system, crew, clocks, handled: done + roundJobs, capMs: CAP_MS })
    lastRate = (await clocks.values(roundJobs - left)).jobs_per_s!
    await crew.stop()
    left = await system.unfinished()
    done += roundJobs - left
  }
  await crew.close()
  return { lastRate, done }
}
