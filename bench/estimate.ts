// How long a plan will take, so that one can decide before it begins. The seconds of each scenario are rough means, apart for
// who is slow, for 2 cores of 2.8 GHz; a file of results says how long each measurement really took.
import { keeperOf } from './backends.ts'
import { SCENARIOS } from './catalogue.ts'
import type { Cell, Turn } from './plan.ts'

/** Compiling, starting the servers and warming the log of PostgreSQL. */
export const START_S = 30
/** A few thousand jobs a second: their backlogs are stopped by time. */
const SLOW = ['graphile-worker:postgres', 'bullmq:postgres']
/** A measurement begins with a process, a database and a system, and ends when they are gone. */
const AROUND_S = 2.5

export function estimateS(turns: readonly Turn[]): number {
  return turns.reduce((sum, { cell }) => sum + secondsOf(cell), 0)
}

function secondsOf({ system, scenario, backend, jobs }: Cell): number {
  const entry = SCENARIOS.find(({ name }) => name === scenario)
  const keeper = keeperOf(backend)
  const usual = entry?.jobs[keeper] ?? jobs
  const slow = SLOW.includes(`${system}:${backend}`) ? entry?.seconds.slow : undefined
  return AROUND_S + (slow ?? entry?.seconds[keeper] ?? 0) * Math.min(jobs / usual, LONGER_MAX)
}

/** A measurement stops by time, so that more jobs do not take much longer. */
const LONGER_MAX = 2

export function inWords(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? `${minutes} minutes` : `${(minutes / 60).toFixed(1)} hours`
}
