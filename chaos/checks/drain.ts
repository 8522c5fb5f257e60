// A worker that gets SIGTERM under load: it begins nothing new, ends what it can within its deadline, and gives the rest back
// without counting it. That nothing else runs twice is judged for every scenario. Pure functions over the books.
import { runsById } from '../books.ts'
import type { Books } from '../books.ts'
import type { Recorded } from '../system.ts'
import type { Robbed } from './delivery.ts'

export interface Drain {
  readonly pid: number
  readonly termMs: number
  /** Infinity: it had to be killed. */
  readonly exitMs: number
  /** Null: a signal ended it. */
  readonly exitCode: number | null
  readonly deadlineMs: number
  /** Jobs that it had begun and that outlast the deadline. */
  readonly outlasting: readonly string[]
}

/** Handlers that were told to stop have their grace, then the last reports are sent. */
const EXIT_MAX_MS = 2_000
/** Of the end of the process: the other worker may first have to end one of the long jobs in its slots. */
const RESTART_MAX_MS = 2_000
/** A signal has to arrive, also where two files of tests share the cores. */
const HEARD_MS = 1_000

export function drainFlaws(books: Books, drain: Drain, recorded: readonly Recorded[]): readonly string[] {
  const { pid, termMs, exitMs, exitCode, deadlineMs, outlasting } = drain
  const runs = runsById(books.runs)
  const begun = books.runs.filter((run) => run.pid === pid && run.startMs > termMs + HEARD_MS).length
  const late = outlasting.filter((id) => (runs.get(id)?.[1]?.startMs ?? Infinity) > exitMs + RESTART_MAX_MS).length
  const counted = recorded.filter(({ id, attempts }) => outlasting.includes(id) && attempts !== 1).length
  const exitMaxMs = deadlineMs + EXIT_MAX_MS
  return [
    ...(exitMs - termMs > exitMaxMs ? [`it had not ended ${exitMaxMs / 1000} s after SIGTERM`] : []),
    ...(exitCode === 0 || exitMs === Infinity
      ? []
      : [`it ended with ${exitCode === null ? 'a signal' : `code ${exitCode}`}`]),
    ...(begun > 0 ? [`it began ${begun} jobs after SIGTERM`] : []),
    ...(late > 0 ? [`${late} jobs that it gave back did not start within ${RESTART_MAX_MS / 1000} s of its end`] : []),
    ...(counted > 0 ? [`${counted} jobs that it gave back have lost an attempt`] : []),
  ]
}

/** It may give these back when its deadline has passed, and no sooner. */
export function robbedByDrain({ pid, termMs, deadlineMs, outlasting }: Drain): Robbed {
  const atMs = termMs + deadlineMs
  return { pid, fromMs: atMs, toMs: atMs, heldUntilMs: atMs, ids: new Set(outlasting) }
}
