// The jobs of one connection, taken and run one by one: claim, rate token, run, decide, settle, tell.
import type { Classifier } from '../core/classify.ts'
import { decideOutcome } from '../core/decide.ts'
import { runPolicy } from '../core/policy.ts'
import type { RunPolicy } from '../core/policy.ts'
import type { AnyJob, FailedHook } from '../core/definition.ts'
import type { EdgeName } from '../core/edges.ts'
import { MillraceError } from '../core/errors.ts'
import type { ClaimedJob, WorkerId } from '../core/job.ts'
import type { Outcome } from '../core/outcome.ts'
import { decodePayload } from '../core/payload.ts'
import { DEFAULT_LANES, laneOf } from '../core/priority.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { EventHub } from '../runtime/events.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { controlTopic } from '../store/wakeups.ts'
import type { JobRun } from '../worker/job-run.ts'
import { reportVerdict } from '../runtime/verdicts.ts'
import type { Bench, Ended, FailedHooks } from './bench.ts'
import type { JobReport, RunReport, RunStatus } from './types.ts'

export interface LineOptions {
  readonly backend: Backend
  readonly connection: string
  readonly queues: readonly string[]
  readonly runtime: Runtime
  readonly events: EventHub
  readonly probe: Probe
  readonly worker: WorkerId
  readonly bench: Bench
  readonly hooks: FailedHooks
  readonly definition: (name: string) => AnyJob | undefined
  readonly classify: Classifier | undefined
  readonly unknownErrors: 'retry' | 'fail'
  readonly onFailed: FailedHook | undefined
}

export class Line {
  readonly #options: LineOptions
  #claimNo = 0

  constructor(options: LineOptions) {
    this.#options = options
  }

  get queues(): readonly string[] {
    return this.#options.queues
  }

  async open(): Promise<void> {
    const { backend, worker, queues } = this.#options
    await backend.workers.register({ id: worker, host: 'test', pid: 0, queues, concurrency: 1 })
    backend.wakeups.listen([controlTopic(worker)], () => void this.beat())
  }

  /** Alive however far the clock has moved, and told of cancellations. */
  async beat(): Promise<void> {
    const { backend, worker, bench } = this.#options
    const { cancels } = await backend.workers.beat({ id: worker, running: 0, commandsSeen: 0 })
    bench.cancel(cancels.map(({ lease }) => lease))
  }

  /** The next ready job of these queues, run to its end; null when none is ready. */
  async runNext(queues: readonly string[]): Promise<JobReport | null> {
    const { backend, worker, bench, hooks, definition } = this.#options
    const { jobs } = await backend.jobs.claim({ worker, claimNo: ++this.#claimNo, queues, limit: 1 })
    const [claimed] = jobs
    if (claimed === undefined) return null
    const run = bench.runOf(claimed, hooks.watch(definition(claimed.name)))
    const waitMs = await this.#waitForToken(claimed)
    if (waitMs !== null) return this.#settle(ended(run, { kind: 'deferred', waitMs }))
    return bench.unlessStuck(run, this.#run(run))
  }

  /** The decision alone: what would become of the job. */
  async decide(end: Ended): Promise<Transition> {
    const { runtime } = this.#options
    const policy = await this.#policyOf(end.run)
    return decideOutcome(end.run.claimed, { ...end, nowMs: runtime.clock.nowMs() }, policy, runtime.random)
  }

  async #run(run: JobRun): Promise<JobReport> {
    const { backend, bench, events, probe } = this.#options
    const { id, name, queue, attemptCount } = run.claimed
    events.emit('started', { id, name, queue, worker: run.worker, attempt: attemptCount + 1 })
    probe.started(run.claimed, laneOf(run.claimed.priority, DEFAULT_LANES), run.worker)
    const sent: Promise<unknown>[] = []
    const end = await bench.start(run, (report) => void sent.push(backend.jobs.apply([report])))
    await Promise.all(sent)
    return this.#settle(end)
  }

  async #settle(end: Ended): Promise<JobReport> {
    const { backend, events, runtime, connection, hooks, onFailed, probe } = this.#options
    const { run } = end
    const transition = await this.decide(end)
    const [verdict = 'missing'] = await backend.jobs.apply([transition])
    const told = onFailed === undefined ? undefined : hooks.wrap(onFailed)
    reportVerdict(run, transition, verdict, { events, logger: runtime.logger, connection, onFailed: told, probe })
    const { id, name, queue, attemptCount } = run.claimed
    return { id, name, queue, attempt: attemptCount + 1, ...reportOf(end, transition, verdict) }
  }

  async #waitForToken({ rateLimited, queue, limitKey }: ClaimedJob): Promise<number | null> {
    if (!rateLimited) return null
    const [reply] = await this.#options.backend.limits.take([{ queue, key: limitKey }])
    return reply?.ok ? null : (reply?.waitMs ?? 0)
  }

  async #policyOf({ definition, claimed }: JobRun): Promise<RunPolicy> {
    const { backend, classify, unknownErrors } = this.#options
    const record = definition?.retry === undefined ? await backend.queues.get(claimed.queue) : null
    const classifiers = classify === undefined ? [] : [classify]
    return runPolicy(definition, record?.retry ?? null, { classifiers, unknownErrors })
  }
}

function ended(run: JobRun, outcome: Outcome): Ended {
  run.state = 'ended'
  return { run, outcome, ranMs: 0, logs: [], progress: [] }
}

const STATUS_OF_EDGE: Partial<Record<EdgeName, RunStatus>> = {
  complete: 'completed',
  fail: 'failed',
  retry: 'retried',
  cancelRunning: 'cancelled',
  snooze: 'snoozed',
  release: 'released',
  defer: 'deferred',
}

export function reportOf<Result>(end: Ended, transition: Transition, verdict: Verdict): RunReport<Result> {
  const { outcome, logs, progress } = end
  const settled = verdict === 'alternative' ? (transition.ifCancelRequested ?? transition) : transition
  const isRefused = verdict === 'stale' || verdict === 'missing' || verdict === 'conflict'
  const { error, result, delayMs } = settled
  return {
    status: isRefused ? 'stale' : (STATUS_OF_EDGE[settled.edge] ?? 'stale'),
    // The type is the one the definition promises to producers; the store keeps none.
    ...(result !== undefined && { result: decodePayload(result) as Result }),
    ...(error !== undefined && { error, thrown: thrownBy(outcome, error.message) }),
    ...(delayMs !== undefined && { delayMs }),
    logs,
    progress,
  }
}

function thrownBy(outcome: Outcome, message: string): unknown {
  if (outcome.kind === 'threw' || outcome.kind === 'fail') return outcome.error
  return outcome.kind === 'timed-out' ? new MillraceError('JOB_TIMEOUT', message) : new Error(message)
}
