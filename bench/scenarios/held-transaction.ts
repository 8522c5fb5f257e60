// The classic killer of queues in a database: somebody holds a snapshot, nothing that dies can be cleaned
// away, and every claim walks over the dead. The same jobs are worked off in rounds without and with a held
// snapshot, in two databases with a worker process each; what counts is the last round. The two take turns, so
// that both share the moods of the machine.
import { fill } from '../backlog.ts'
import { startClocks } from '../clocks.ts'
import type { Crew } from '../crew.ts'
import { untilFinished } from '../finish.ts'
import { CAP_MS } from '../scenario.ts'
import type { Scenario, Stage } from '../scenario.ts'

const ROUNDS = 4
const CONCURRENCY = 100

export const heldTransaction: Scenario = {
  name: 'held-transaction',
  says: `rate of the last of ${ROUNDS} rounds while a snapshot is held, and its ratio to the same without`,
  aim: 'throughput',
  jobs: { postgres: 120_000 },
  seconds: { postgres: 15, slow: 50 },
  usual: ['millrace', 'graphile-worker-tuned', 'pg-boss'],
  async run(stage, jobs) {
    const roundJobs = Math.ceil(jobs / ROUNDS)
    const other = await stage.another()
    const free = new Side(stage, await stage.crew({ concurrency: CONCURRENCY }), roundJobs)
    const held = new Side(other, await other.crew({ concurrency: CONCURRENCY }), roundJobs)
    await other.database!.holdSnapshot()
    for (let round = 0; round < ROUNDS; round += 1) {
      await free.play()
      await held.play()
    }
    await other.close()
    const done = Math.min(free.done, held.done)
    return {
      values: { jobs_per_s: held.rate, unheld_jobs_per_s: free.rate, ratio: held.rate / free.rate },
      ...(done < roundJobs * ROUNDS && { cappedAtJobs: done }),
    }
  },
}

class Side {
  readonly #stage: Stage
  readonly #crew: Crew
  readonly #roundJobs: number
  #left = 0
  /** Jobs of all rounds. */
  done = 0
  /** Jobs per second of the latest round. */
  rate = 0

  constructor(stage: Stage, crew: Crew, roundJobs: number) {
    this.#stage = stage
    this.#crew = crew
    this.#roundJobs = roundJobs
  }

  async play(): Promise<void> {
    const { system, database } = this.#stage
    const crew = this.#crew
    // Every round begins with the same backlog, also when the time of the one before was over too early.
    await fill(this.#stage, this.#roundJobs - this.#left)
    await database?.analyze()
    const clocks = await startClocks({ stage: this.#stage, crew, isWorkHere: false })
    await crew.start()
    const left = await untilFinished({ system, crew, clocks, handled: this.done + this.#roundJobs, capMs: CAP_MS })
    const { jobs_per_s: rate = 0 } = await clocks.values(this.#roundJobs - left)
    await crew.stop()
    this.rate = rate
    this.#left = await system.unfinished()
    this.done += this.#roundJobs - this.#left
  }
}
