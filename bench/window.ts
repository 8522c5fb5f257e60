// How many jobs of the hybrid may wait in Redis. At its default most of a backlog would begin in PostgreSQL, and a drain
// would measure how fast jobs are brought over. So it is raised, the page says so, and one scenario leaves it alone.
import { HYBRID_TIMES } from '../src/backends/hybrid/times.ts'
import { shown } from './page/names.ts'

export const WINDOW = 160_000
/** The most there is. A sixth of it is what a lane may hold without asking (hybrid/window.ts). */
export const WINDOW_TOTAL = 1_000_000
export const WINDOW_DEFAULT = HYBRID_TIMES.window

/** The scenario in which nothing is set. */
export const UNSET_SCENARIO = 'drain-100-defaults'

export const WINDOW_SAYS =
  `window raised to ${shown(WINDOW)} (windowTotal to ${shown(WINDOW_TOTAL)}) so that the whole backlog is in Redis before the ` +
  `clocks start; at the default of ${shown(WINDOW_DEFAULT)} the rest goes through PostgreSQL, see ${UNSET_SCENARIO}`
