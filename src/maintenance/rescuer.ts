// Finds workers that are dead and settles what nobody else will: jobs of dead workers, children of failed
// parents, jobs of cancelled batches. The store lists, core decides, the store applies, guarded.
//
// Every process watches the beats all the time, the leader alone acts: so a new leader need not watch for
// a whole ttl before it can judge.
import { decideCancel, decideExpiry, decideOrphan } from '../core/decide.ts'
import { LIMITS } from '../core/limits.ts'
import { EMPTY_WATCH, watchBeats } from '../core/liveness.ts'
import { DEFAULT_RETRY } from '../core/retry.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { DueJob, DueKind } from '../store/ports.ts'
import type { MaintenanceOptions } from './options.ts'

/** For each due job, in order, what is to be done with it. */
type Decide = (
  due: readonly DueJob[],
) => readonly (readonly Transition[])[] | Promise<readonly (readonly Transition[])[]>

const LOOK_MIN_MS = 250

/** A short ttl needs a closer look: a last beat is seen one look later, and a pause of half a ttl starts the watch anew. */
function lookEveryMs({ periodMs, workerTtlMs }: MaintenanceOptions): number {
  return Math.min(periodMs, Math.max(workerTtlMs / 20, LOOK_MIN_MS), workerTtlMs / 4)
}

export function createRescuer(options: MaintenanceOptions, isLeading: () => boolean): Service {
  const { runtime, backend, workerTtlMs } = options
  const periodMs = lookEveryMs(options)
  const { clock, logger } = runtime
  let watch = EMPTY_WATCH

  async function pass(): Promise<number> {
    const askedMs = clock.monoMs()
    const workers = await backend.workers.list()
    const seen = watchBeats(watch, workers, { askedMs, answeredMs: clock.monoMs() }, workerTtlMs)
    watch = seen.watch
    if (!isLeading()) return periodMs
    runtime.failpoint('rescuer.before-declare')
    if (seen.dead.length > 0) {
      const dead = await backend.workers.declareDead(seen.dead)
      for (const worker of dead) logger.warn({ worker }, 'a worker stopped beating and is declared dead')
    }
    const settled =
      (await settleDue('expired', async (due) => {
        const queues = new Map((await backend.queues.list()).map(({ name, retry }) => [name, retry]))
        return due.map(({ job, visibilityLapsed }) => {
          const retry = options.retryOf(job.name) ?? queues.get(job.queue) ?? DEFAULT_RETRY
          const why = visibilityLapsed ? 'visibility-lapsed' : 'worker-dead'
          return [decideExpiry(job, { retry }, runtime.random, why)]
        })
      })) +
      (await settleDue('orphaned', (due) =>
        due.map(({ job, orphan }) => (orphan === undefined ? [] : [decideOrphan(job, orphan)])),
      )) +
      (await settleDue('batch-cancelled', (due) =>
        due.map(({ job }) => decideCancel(job.id, 'its batch was cancelled')),
      ))
    if (settled >= LIMITS.maintenanceBatchMax) return 0
    return Math.min(Math.max(Math.ceil(seen.nextDeathMs - clock.monoMs()), 1), periodMs)
  }

  async function settleDue(kind: DueKind, decide: Decide): Promise<number> {
    const due = await backend.jobs.due(kind, LIMITS.maintenanceBatchMax)
    if (due.length === 0) return 0
    runtime.failpoint('rescuer.before-apply')
    const decisions = await decide(due)
    const decided = due.flatMap((one, index) => (decisions[index] ?? []).map((transition) => ({ one, transition })))
    const transitions = decided.map(({ transition }) => transition)
    const verdicts: Verdict[] = []
    for (let from = 0; from < transitions.length; from += LIMITS.applyBatchMax) {
      verdicts.push(...(await backend.jobs.apply(transitions.slice(from, from + LIMITS.applyBatchMax))))
    }
    for (const [index, { one, transition }] of decided.entries()) report(one, transition, verdicts[index] ?? 'missing')
    return due.length
  }

  function report({ job }: DueJob, transition: Transition, verdict: Verdict): void {
    if (verdict !== 'applied') return
    options.probe?.rescued(job, transition)
    const { id, name, queue, worker } = job
    const forGood = transition.edge === 'expireForGood'
    if (transition.edge === 'expire' || forGood) {
      logger.warn({ jobId: id, name, queue, worker, forGood }, 'a job lost its worker')
      options.events.emit('expired', { id, name, queue, worker, forGood })
    }
    if (transition.to === 'failed' && transition.error !== undefined) {
      const attempts = job.attemptCount + (transition.attempt === 'count' ? 1 : 0)
      options.events.emit('failed', { id, name, queue, worker, attempt: attempts, ranMs: 0, error: transition.error })
      options.onFailed({ id, name, queue, connection: options.connection, attempts, error: transition.error })
    }
  }

  return createLoop({ name: 'rescuer', runtime, pass })
}
