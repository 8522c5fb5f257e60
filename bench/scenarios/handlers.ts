// Handlers that take 10 ms, as most do: what counts is how well their waiting is shared out. At concurrency 10 one
// process can end 1000 jobs a second, and a second process should double that.
import type { Scenario } from '../scenario.ts'
import { OURS } from '../system.ts'
import { measureDrain } from './drain.ts'

const JOBS = 2000
const CONCURRENCY = 10
const HANDLER_MS = 10
/** Half a second of a process; the rounds after it last as long as everywhere. */
const WARM_UP_JOBS = 500

export function handlers(processes: number): Scenario {
  const each = processes === 1 ? '' : ` in each of ${processes} processes`
  return {
    name: `handlers-${HANDLER_MS}ms${processes === 1 ? '' : `x${processes}`}`,
    says: `work off jobs whose handlers take ${HANDLER_MS} ms, concurrency ${CONCURRENCY}${each}`,
    aim: 'handlers',
    // In memory nothing is shared out. Each process has as many to do as a single one: it takes as long to begin and to end.
    jobs: { redis: JOBS * processes, postgres: JOBS * processes },
    seconds: { redis: 3.5, postgres: 3.5 },
    usual: [OURS],
    ...(processes > 1 && { beside: `handlers-${HANDLER_MS}ms` }),
    run: (stage, jobs) =>
      measureDrain(stage, jobs, {
        concurrency: CONCURRENCY,
        processes,
        isAnalysed: true,
        handlerMs: HANDLER_MS,
        warmUpJobs: WARM_UP_JOBS,
      }),
  }
}
