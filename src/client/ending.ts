// Ending jobs from outside: cancel and remove. Two decisions are sent together for each job, one for a
// waiting and one for a running job; when neither holds, the job moved between them and is asked again.
import { decideCancel, decideRemove } from '../core/decide.ts'
import { MillraceError } from '../core/errors.ts'
import { isFinal } from '../core/job.ts'
import type { JobId } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { invalidOption } from '../core/names.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import type { Connections } from './connections.ts'
import { retryStore } from './store-retry.ts'

/**
 * - `cancelled`: it waited and will never start.
 * - `requested`: it runs; its worker is told to abort.
 * - `finished`: it had already ended.
 */
export type CancelAnswer = 'cancelled' | 'requested' | 'finished' | 'missing'
/** `requested`: it runs; it is aborted first and deleted when its run has ended. */
export type RemoveAnswer = 'removed' | 'requested' | 'missing'

export interface EndingRef {
  readonly id: JobId
  readonly connection?: string
}

export interface Ending {
  /** In the order asked. */
  cancel(refs: readonly EndingRef[], reason: string, actor?: string): Promise<readonly CancelAnswer[]>
  remove(refs: readonly EndingRef[], actor?: string): Promise<readonly RemoveAnswer[]>
}

const REASON_CHARS_MAX = 1_000

/** Why a job was cancelled, as its row keeps it. */
export function checkReason(reason: unknown): string {
  if (typeof reason === 'string' && reason.length <= REASON_CHARS_MAX) return reason
  throw invalidOption('reason', reason, `text of at most ${REASON_CHARS_MAX} characters`)
}

interface Rules<Answer> {
  readonly decide: (id: JobId) => readonly [Transition, Transition]
  readonly ifWaiting: Answer
  readonly ifRunning: Answer
  /** A job that was final before; null: that is no answer. */
  readonly ifFinal: Answer | null
  /** Told of those that waited and were ended now. */
  readonly onEnded?: ((ids: readonly JobId[], backend: Backend) => void) | undefined
}

/** A job that moves each time it is asked is asked again this often. */
const ROUNDS_MAX = 10
/** Two transitions each. */
const CHUNK_MAX = LIMITS.applyBatchMax / 2

export function createEnding(connections: Connections, runtime: Runtime, probe?: Probe): Ending {
  const tellCancelled = probe?.cancelled
  /** Nobody waits for it: an id says neither queue nor kind, and a count is not worth a second of anybody's time. */
  const countCancelled =
    tellCancelled &&
    ((ids: readonly JobId[], { query }: Backend): void => {
      query.get(ids).then(
        (found) => found.forEach((job) => job && tellCancelled(job)),
        () => undefined,
      )
    })

  async function end<Answer extends string>(
    refs: readonly EndingRef[],
    rules: Rules<Answer>,
  ): Promise<readonly (Answer | 'missing')[]> {
    const answers = new Map<JobId, Answer>()
    for (const name of connections.names) {
      const here = refs.filter(({ id, connection = name }) => connection === name && !answers.has(id))
      for (let at = 0; at < here.length; at += CHUNK_MAX) {
        const ids = here.slice(at, at + CHUNK_MAX).map(({ id }) => id)
        await endOn(connections.backend(name), runtime, ids, rules, answers)
      }
    }
    return refs.map(({ id }) => answers.get(id) ?? 'missing')
  }

  return {
    cancel: (refs, reason, actor) =>
      end<CancelAnswer>(refs, {
        decide: (id) => decideCancel(id, reason, actor),
        ifWaiting: 'cancelled',
        ifRunning: 'requested',
        ifFinal: 'finished',
        onEnded: countCancelled,
      }),
    remove: (refs, actor) =>
      end<RemoveAnswer>(refs, {
        decide: (id) => decideRemove(id, actor),
        ifWaiting: 'removed',
        ifRunning: 'requested',
        ifFinal: null,
      }),
  }
}

async function endOn<Answer>(
  backend: Backend,
  runtime: Runtime,
  ids: readonly JobId[],
  rules: Rules<Answer>,
  answers: Map<JobId, Answer>,
): Promise<void> {
  const { jobs, query } = backend
  let open = ids
  for (let round = 0; round < ROUNDS_MAX && open.length > 0; round++) {
    const transitions = open.flatMap(rules.decide)
    const verdicts = await retryStore(runtime, () => jobs.apply(transitions))
    const moved: JobId[] = []
    const ended: JobId[] = []
    for (const [index, id] of open.entries()) {
      const [waiting = 'stale', running = 'stale'] = verdicts.slice(index * 2, index * 2 + 2)
      if (waiting === 'applied') ended.push(id)
      if (took(waiting)) answers.set(id, rules.ifWaiting)
      else if (took(running)) answers.set(id, rules.ifRunning)
      else if (waiting !== 'missing') moved.push(id)
    }
    if (ended.length > 0) rules.onEnded?.(ended, backend)
    if (moved.length === 0) return
    const stored = await retryStore(runtime, () => query.get(moved))
    open = moved.filter((id, index) => {
      const job = stored[index]
      if (job && rules.ifFinal !== null && isFinal(job.status)) answers.set(id, rules.ifFinal)
      return job && !answers.has(id)
    })
  }
  if (open.length === 0) return
  const message = `job ${open[0]} changed its status ${ROUNDS_MAX} times while it was to be ended: try again`
  throw new MillraceError('STORE_TIMEOUT', message, { retryable: true, details: { jobId: open[0] } })
}

function took(verdict: Verdict): boolean {
  return verdict === 'applied' || verdict === 'already' || verdict === 'alternative'
}
