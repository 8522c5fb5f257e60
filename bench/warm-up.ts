// What comes before the clocks: a small backlog is worked off by a crew, and then more until it has worked for more than a
// second, so that neither a process nor the store is new and the compiler of the runtime has done what it does. On the
// hybrid a worker is also who opens the way through Redis: without one having been there producers leave every job to PostgreSQL.
import { setTimeout as pause } from 'node:timers/promises'
import { fill } from './backlog.ts'
import { startClocks } from './clocks.ts'
import type { Clocks } from './clocks.ts'
import type { Crew } from './crew.ts'
import { untilFinished } from './finish.ts'
import type { Stage } from './scenario.ts'

const JOBS_MAX = 2000
/** Of each round. Who is slower than that cannot be measured. */
const ROUND_MAX_MS = 15_000
/**
 * How long the crew works after the first backlog. Each round is what the rate of the one before makes of the rest of this
 * time; the first rates of whoever is fast are a fraction of the last, so there are several.
 */
const WORK_S = 1.5
const ROUNDS_MAX = 4
/** Rounds of less than this share of the time say nothing new. */
const WORK_SHARE_MIN = 0.8
/** What a producer rehearses with may be many times what the crew does meanwhile: one who is fast at one and slow at the other. */
const REHEARSAL_MAX_MS = 120_000
/** For each process of the crew. */
const ROUND_JOBS_MAX = 60_000
const REHEARSAL_JOBS_MAX = 30_000
const CONCURRENCY = 100
/** A few of the first may still have gone to PostgreSQL. */
const SHARE_MIN = 0.9
const LEARN_MAX = 500
const LEARN_MS = 10

/** The crew goes on working. Answers how many jobs it has done. */
export async function warmUp(stage: Stage, crew: Crew, jobs: number, firstMax = JOBS_MAX): Promise<number> {
  const first = Math.min(firstMax, jobs)
  await fill(stage, first)
  let perMs = first / (await workOff(stage, crew, first))
  await crew.stop()
  let done = first + (stage.system.dispatch === undefined ? 0 : await learnTheWay(stage))
  const enoughMs = WORK_S * 1000
  let workedMs = 0
  for (let round = 0; round < ROUNDS_MAX && workedMs < WORK_SHARE_MIN * enoughMs; round += 1) {
    if (round > 0) await crew.stop()
    const wanted = Math.ceil(perMs * (enoughMs - workedMs))
    const count = Math.min(wanted, ROUND_JOBS_MAX * crew.processes, jobs)
    await fill(stage, count)
    done += count
    const ms = await workOff(stage, crew, done)
    perMs = count / ms
    workedMs += ms
  }
  return done
}

/** How many milliseconds it took. */
async function workOff(stage: Stage, crew: Crew, handled: number): Promise<number> {
  const clocks = await startClocks({ stage, crew, isWorkHere: false })
  await crew.start()
  return finish(stage, crew, clocks, handled)
}

async function finish(
  stage: Stage,
  crew: Crew,
  clocks: Clocks,
  handled: number,
  capMs = ROUND_MAX_MS,
): Promise<number> {
  const left = await untilFinished({ system: stage.system, crew, clocks, handled, capMs })
  if (left > 0) throw new Error(`${left} jobs of the warm-up were not finished within ${capMs / 1000} s`)
  return clocks.elapsedMs()
}

/** A producer hears of the way through Redis, and of the room there, with calls that go to PostgreSQL. How many it took. */
async function learnTheWay({ system, payload }: Stage): Promise<number> {
  for (let jobs = 1; jobs <= LEARN_MAX; jobs += 1) {
    await system.enqueue(payload(jobs))
    if ((await system.dispatch!.count()) > 0) return jobs
    await pause(LEARN_MS)
  }
  throw new Error(`none of ${LEARN_MAX} jobs went to Redis`)
}

/**
 * For what is measured while nobody works: the same, then the very calls that will be measured for a second or so, and the
 * crew goes. `rehearse` adds at most so many jobs within the time and answers how many it has added.
 */
export async function warmUpProducers(
  stage: Stage,
  jobs: number,
  rehearse?: (most: number, withinMs: number) => Promise<number>,
): Promise<void> {
  const crew = await stage.crew({ concurrency: CONCURRENCY })
  const handled = await warmUp(stage, crew, jobs)
  if (rehearse !== undefined) {
    const clocks = await startClocks({ stage, crew, isWorkHere: false })
    const added = await rehearse(Math.min(2 * handled, REHEARSAL_JOBS_MAX, jobs), WORK_S * 1000)
    await finish(stage, crew, clocks, handled + added, REHEARSAL_MAX_MS)
  }
  await crew.stop()
  await crew.close()
}

/** Of jobs that wait now, so many were added: those that can be in Redis must be. */
export async function checkDispatched({ system: { dispatch } }: Stage, jobs: number): Promise<void> {
  if (dispatch === undefined) return
  const dispatched = await dispatch.count()
  if (dispatched >= SHARE_MIN * Math.min(jobs, dispatch.most)) return
  throw new Error(`only ${dispatched} of ${jobs} jobs went to Redis: this does not measure the way of the hybrid`)
}
