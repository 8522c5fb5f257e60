// When is a backlog worked off? When the store says so. Handlers that have started are counted on the way, so
// that the store is not asked while there is much to do.
import { setTimeout as pause } from 'node:timers/promises'
import type { Clocks } from './clocks.ts'
import type { Crew } from './crew.ts'
import type { OpenSystem } from './system.ts'

const ASK_EVERY_MS = 2

export interface FinishOptions {
  readonly system: OpenSystem
  readonly crew: Crew
  readonly clocks: Clocks
  /** Handler starts of this crew after which nothing should be left. */
  readonly handled: number
  readonly capMs: number
}

/** Stops the clocks when nothing is left or the time is over, and answers how many jobs are left then. */
export async function untilFinished({ system, crew, clocks, handled, capMs }: FinishOptions): Promise<number> {
  await crew.handled(handled, capMs - clocks.elapsedMs())
  while (clocks.elapsedMs() < capMs) {
    if ((await system.unfinished()) === 0) {
      clocks.stop()
      return 0
    }
    await pause(ASK_EVERY_MS)
  }
  // What is finished between this moment and the answer counts in favour of the system.
  clocks.stop()
  return system.unfinished()
}
