// The worker of one connection: one life after another, each with an id, a heartbeat and a trust window;
// a pump that claims and settles; a dispatch that starts what was claimed.
//
// States: idle → working ⇄ quiet → draining → stopped. Losing a life (declared dead, out of touch) aborts
// every handler and gives back everything unstarted; then a new life begins.
import { decideOutcome, runsAlone, withinAttempts } from '../core/decide.ts'
import { runPolicy } from '../core/policy.ts'
import type { RunPolicy } from '../core/policy.ts'
import { MillraceError } from '../core/errors.ts'
import type { ClaimedJob, JobId, LeaseRef, WorkerId } from '../core/job.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Verdict } from '../core/transition.ts'
import { isPlanted } from '../core/planted.ts'
import { laneOf } from '../core/priority.ts'
import { bounded } from '../runtime/bounded.ts'
import { reportVerdict } from '../runtime/verdicts.ts'
import type { VerdictOptions } from '../runtime/verdicts.ts'
import type { ClaimReply } from '../store/ports.ts'
import { Completions } from './completions.ts'
import { Deadlines } from './deadlines.ts'
import { Dispatch } from './dispatch.ts'
import type { EngineOptions } from './engine-options.ts'
import { Executor } from './executor.ts'
import { JobRun } from './job-run.ts'
import type { AbortCause } from './job-run.ts'
import { Life } from './life.ts'
import { Poller } from './poller.ts'
import { Pump } from './pump.ts'
import type { Demand, Settlement } from './pump.ts'
import { QueueView } from './queue-view.ts'
import { takeTokens } from './rate-gate.ts'
import type { RateGateOptions } from './rate-gate.ts'
import { Reports } from './reports.ts'
import { Standing } from './standing.ts'
import { tellProgress, tellStarted } from './telling.ts'

export class Engine {
  readonly #options: EngineOptions
  /** Claimed and without a verdict. A job may be claimed again while an older run of it still ends: the newest counts. */
  readonly #runs = new Map<JobId, JobRun>()
  readonly #reports: Reports
  readonly #deadlines: Deadlines
  readonly #executor: Executor
  readonly #dispatch: Dispatch
  readonly #pump: Pump
  readonly #completions: Completions
  readonly #poller: Poller
  readonly #standing: Standing
  readonly #queues: QueueView
  readonly #life: Life
  readonly #verdicts: VerdictOptions
  readonly #rateGate: RateGateOptions
  #state: 'idle' | 'working' | 'quiet' | 'draining' | 'stopped' = 'idle'
  #rotation = 0
  #stopHearing: (() => void) | undefined

  constructor(options: EngineOptions) {
    this.#options = options
    const { runtime, backend, events, connection, onFailed, slots, probe } = options
    this.#verdicts = { events, logger: runtime.logger, connection, onFailed, probe }
    this.#deadlines = new Deadlines(runtime.clock)
    this.#reports = new Reports({ clock: runtime.clock, onWaiting: () => this.#pump.wake() })
    this.#executor = new Executor({
      clock: runtime.clock,
      middleware: options.middleware,
      tracing: options.tracing,
      host: {
        clock: runtime.clock,
        services: (run) => options.services(run.claimed, () => !run.over),
        onReport: (run) => this.#reports.add(run),
        onExtend: (run) => this.#deadlines.moved(run),
        complete: (run, tx, result) => this.#completions.complete(run, tx, result),
      },
      onEnd: (run, outcome) => this.#end(run, outcome),
    })
    this.#dispatch = new Dispatch({
      runtime,
      slots,
      mayStart: (run) => this.#state === 'working' && this.#life.isCurrent(run.worker) && this.#isTrusted(),
      isPaused: (queue) => this.#queues.isPaused(queue),
      start: (run) => this.#start(run),
      takeTokens: (runs) => void takeTokens(runs, this.#rateGate),
      giveBack: (run) => this.#settle(run, { kind: 'returned' }),
      onRoom: () => this.#pump.wake(),
    })
    this.#rateGate = {
      runtime,
      limits: backend.limits,
      admit: (run) => this.#dispatch.admitted(run),
      defer: (run, waitMs) => this.#vacate(run, { kind: 'deferred', waitMs }),
      giveBack: (run) => this.#vacate(run, { kind: 'returned' }),
    }
    this.#pump = new Pump({
      runtime,
      jobs: backend.jobs,
      callsMax: backend.capabilities.orderedCalls,
      settlesApart: backend.capabilities.settlesApart,
      demand: (asked) => this.#demand(asked),
      onAnswered: () => slots.letGo(),
      reports: (most) => this.#reports.take(most),
      onReportLost: ({ run, transition }) => run && this.#reports.takeBack(run, transition),
      onClaimed: (jobs, demand, reply) => this.#claimed(jobs, demand, reply),
      onVerdict: (settlement, verdict) => this.#verdict(settlement, verdict),
      isKnown: ({ jobId, lease }) => this.#runs.get(jobId)?.claimed.lease === lease,
      life: () => this.#life.current,
      nextClaimNo: () => this.#life.nextClaimNo(),
      onLooked: (worker, claimNo) => this.#standing.looked(worker, claimNo),
      onGivenBack: () => this.#standing.givenBack(),
    })
    this.#completions = new Completions({
      runtime,
      backend,
      connection,
      policyOf: (run) => this.#policyOf(run),
      onVerdict: (settlement, verdict) => this.#verdict(settlement, verdict),
    })
    this.#poller = new Poller({
      runtime,
      wakeups: backend.wakeups,
      queues: options.queues,
      onWake: () => this.#pump.wake(),
    })
    this.#standing = new Standing({
      runtime,
      handOvers: backend.handOvers,
      slots,
      onJobs: (jobs, worker) => this.#hold(jobs, worker),
      onOpen: () => this.#poller.expect(),
      onDoubt: () => this.#pump.doubt(),
    })
    this.#queues = new QueueView({ runtime, backend, queues: options.queues, onChange: () => this.#queuesChanged() })
    this.#life = new Life({
      runtime,
      backend,
      times: options.times,
      worker: { host: options.host.name, pid: options.host.pid, queues: options.queues, concurrency: slots.max },
      running: () => this.#dispatch.running,
      onCancels: (cancels) => this.#cancel(cancels),
      onLeasesLost: (lost) => this.#leasesLost(lost),
      onCommand: ({ kind }) =>
        kind === 'stop' ? options.onStopCommand() : kind === 'quiet' ? this.quiet() : this.resume(),
      onLost: (id, reason) => this.#lost(id, reason),
      onTrusted: () => this.#poller.expect(),
    })
  }

  get id(): WorkerId {
    return this.#life.id
  }

  get running(): number {
    return this.#dispatch.running
  }

  async start(): Promise<void> {
    if (this.#state !== 'idle') return
    await this.#queues.start()
    await this.#life.start()
    if (!this.#isIdle()) {
      // Told to stop before it had begun.
      await this.#life.stop()
      throw new MillraceError('STOPPED', 'the worker was stopped while it started')
    }
    this.#state = 'working'
    // A store that has forgotten the end of a run says that it still runs here.
    this.#stopHearing = this.#options.backend.onBack?.(() => this.#pump.doubt())
    this.#poller.start()
    this.#options.events.emit('workerStarted', { worker: this.id })
  }

  /** Takes no new jobs; what runs goes on. */
  quiet(): void {
    if (this.#state !== 'working') return
    this.#state = 'quiet'
    this.#dispatch.returnBuffered()
    this.#standing.withdraw()
  }

  resume(): void {
    if (this.#state !== 'quiet') return
    this.#state = 'working'
    this.#poller.expect()
  }

  /** Waits for running jobs until the deadline, then aborts and releases them; nothing of them is lost. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.#state === 'stopped' || this.#state === 'draining') return
    const { runtime, times, flushTimeoutMs } = this.#options
    const wasStarted = this.#state !== 'idle'
    this.#state = 'draining'
    this.#poller.stop()
    this.#dispatch.returnBuffered()
    if (wasStarted) {
      this.#standing.withdraw()
      if (!(await this.#dispatch.idleWithin(deadlineMs))) {
        const reason = new MillraceError('STOPPED', 'the worker is stopping and its deadline has passed')
        for (const run of this.#runs.values())
          this.#abort(run, { reason, outcome: { kind: 'release', reason: 'the worker stopped' } })
        await this.#dispatch.idleWithin(times.abortGraceMs * 2)
      }
      // Everything decided gets its verdict, as far as the store answers.
      const flushed = Promise.all([this.#pump.flushed(), this.#completions.flushed()])
      await bounded(runtime.clock, flushTimeoutMs, 'the last flush', flushed).catch((error: unknown) => {
        runtime.logger.warn({ error }, 'stopped with settlements unsent; their jobs will be given to others')
      })
    }
    this.#state = 'stopped'
    this.#dispatch.stop()
    this.#queues.stop()
    this.#stopHearing?.()
    this.#standing.stop()
    this.#pump.stop()
    this.#completions.stop()
    this.#deadlines.stop()
    await this.#life.stop()
    if (wasStarted) this.#options.events.emit('workerStopped', { worker: this.id })
    runtime.logger.info({ worker: this.id }, 'worker stopped')
  }

  #isIdle(): boolean {
    return this.#state === 'idle'
  }

  #isTrusted(): boolean {
    return this.#life.isTrusted() || isPlanted('start-without-trust')
  }

  #demand(asked: number): Demand | null {
    const worker = this.#life.current
    if (this.#state !== 'working' || worker === null || !this.#isTrusted()) return null
    const limit = this.#dispatch.wanted(asked, this.#options.backend.capabilities.orderedCalls)
    // Asked last: it forgets the hint that it answers with.
    if (limit <= 0 || !this.#poller.expects) return null
    const { queues, slots } = this.#options
    slots.hold()
    // Who is busy might keep others waiting; and another engine may want the process for itself.
    const stands = asked === 0 && this.#dispatch.isEmpty && !slots.isShared && this.#standing.stand(worker)
    const first = this.#rotation++ % queues.length
    const rotated = [...queues.slice(first), ...queues.slice(0, first)]
    return { worker, claimNo: this.#life.nextClaimNo(), queues: rotated, limit, stands }
  }

  #claimed(jobs: readonly ClaimedJob[], demand: Demand, reply: ClaimReply): void {
    if (reply.refused === 'worker-dead') {
      this.#life.lose(demand.worker, 'the store does not know this worker as alive')
      return
    }
    // The number was used up by another copy of this very call: what that copy claimed is unknown here.
    if (reply.refused === 'superseded') this.#pump.doubt()
    this.#poller.claimed(jobs.length, demand.limit)
    this.#queues.sawPaused(demand.queues, reply.paused)
    this.#standing.told(demand.worker, reply.answered ?? 0)
    if (jobs.length > 0) this.#hold(jobs, demand.worker)
  }

  #hold(jobs: readonly ClaimedJob[], worker: WorkerId): void {
    const nowMs = this.#options.runtime.clock.monoMs()
    const runs = jobs.map((one) => {
      const claimed = withinAttempts(one, this.#options.attemptsMax)
      const run = new JobRun(claimed, this.#options.definition(claimed.name), worker, nowMs, this.#onDeadline)
      this.#runs.set(claimed.id, run)
      this.#options.slots.hold()
      return run
    })
    // Jobs that were claimed by a life that is over are not ours to start.
    if (!this.#life.isCurrent(worker)) {
      for (const run of runs) {
        run.state = 'ended'
        this.#settle(run, { kind: 'returned' })
      }
      return
    }
    if (jobs.some(runsAlone)) this.#standing.withdraw()
    this.#dispatch.add(runs)
  }

  #start(run: JobRun): void {
    const { runtime, events, probe } = this.#options
    const { claimed } = run
    run.state = 'running'
    run.startedMs = runtime.clock.monoMs()
    run.timeoutMs = Math.min(claimed.timeoutMs, this.#options.timeoutMaxMs)
    run.dueMs = run.startedMs + run.timeoutMs
    this.#deadlines.add(run, run.timeoutMs)
    tellStarted(run, events)
    probe?.started(claimed, laneOf(claimed.priority, this.#queues.lanesOf(claimed.queue)), run.worker)
    this.#executor.start(run)
  }

  readonly #onDeadline = (run: JobRun): void => {
    const { timeoutMs } = run
    const reason = new MillraceError('JOB_TIMEOUT', `the job ran longer than its timeout of ${timeoutMs} ms`)
    // One turn of the loop first: after a blocked loop the end of this very run may be waiting to be delivered.
    const { clock } = this.#options.runtime
    void clock.breathe().then(() => {
      if (run.over) return
      if (run.dueMs <= clock.monoMs()) this.#abort(run, { reason, outcome: { kind: 'timed-out', timeoutMs } })
      else this.#deadlines.add(run, timeoutMs) // it was extended in its last moment
    })
  }

  #end(run: JobRun, outcome: Outcome): void {
    this.#options.runtime.failpoint('worker.handler-ended')
    const ranMs = this.#options.runtime.clock.monoMs() - run.startedMs
    this.#settle(run, outcome, ranMs)
    this.#dispatch.ended(run, ranMs)
    // With the settlement goes a claim that can stand.
    if (this.#standing.isHeard && this.#dispatch.isEmpty) this.#poller.expect()
  }

  #settle(run: JobRun, outcome: Outcome, ranMs = 0): void {
    const { runtime } = this.#options
    if (run.completion !== undefined) {
      this.#completions.settle(run, run.completion, outcome, ranMs)
      return
    }
    const end = { outcome, ranMs, nowMs: runtime.clock.nowMs() }
    const transition = decideOutcome(run.claimed, end, this.#policyOf(run), runtime.random)
    this.#reports.ended(run)
    this.#pump.settle({ transition, run })
  }

  #policyOf({ definition, claimed }: JobRun): RunPolicy {
    return runPolicy(definition, this.#queues.retryOf(claimed.queue), this.#options)
  }

  /** A run that has a slot and was not started. */
  #vacate(run: JobRun, outcome: Outcome): void {
    this.#dispatch.vacate(run, () => this.#settle(run, outcome))
  }

  #verdict({ run, transition }: Settlement, verdict: Verdict): void {
    if (run === null) return
    if (transition.edge === 'report') {
      if (verdict === 'busy') {
        this.#reports.rest(run, transition)
        return
      }
      run.reportOut = undefined
      if (verdict === 'stale' || verdict === 'missing') this.#reportRefused(run)
      else if (transition.progress !== undefined) tellProgress(run, transition.progress, this.#options.events)
      return
    }
    if (this.#runs.get(run.claimed.id) === run) this.#runs.delete(run.claimed.id)
    this.#options.slots.letGo()
    run.trace?.settled(transition, verdict)
    reportVerdict(run, transition, verdict, this.#verdicts)
  }

  #reportRefused(run: JobRun): void {
    // After a completion inside a transaction it may have come too late; the completion itself is guarded.
    if (run.completion === undefined) this.#leaseLost(run, 'a report was refused')
  }

  #cancel(cancels: readonly LeaseRef[]): void {
    for (const { jobId, lease } of cancels) {
      const run = this.#runs.get(jobId)
      if (run === undefined || run.over || run.claimed.lease !== lease) continue
      if (run.state === 'buffered') {
        run.state = 'ended'
        this.#settle(run, { kind: 'returned' })
        continue
      }
      const reason = new MillraceError('JOB_CANCELLED', 'the job was cancelled while it ran')
      this.#abort(run, { reason, outcome: { kind: 'cancel', reason: 'cancelled while running' } })
    }
  }

  #leasesLost(lost: readonly LeaseRef[]): void {
    for (const { jobId, lease } of lost) {
      const run = this.#runs.get(jobId)
      if (run === undefined || run.over || run.claimed.lease !== lease) continue
      if (run.state === 'running') this.#leaseLost(run, 'the store has given it to somebody else')
      else if (run.state === 'buffered') this.#dispatch.returnBuffered((one) => one === run)
    }
  }

  #lost(worker: WorkerId, reason: string): void {
    this.#options.runtime.logger.error({ worker, reason }, 'the worker lost its life; handlers are aborted')
    this.#options.events.emit('workerLost', { worker, reason })
    this.#standing.stop()
    this.#dispatch.returnBuffered()
    for (const run of this.#runs.values()) this.#leaseLost(run, reason)
  }

  #leaseLost(run: JobRun, why: string): void {
    const reason = new MillraceError('LEASE_LOST', `this run no longer owns its job: ${why}`)
    this.#abort(run, { reason, outcome: { kind: 'release', reason: 'lease-lost' } })
  }

  #abort(run: JobRun, cause: AbortCause): void {
    if (run.state === 'running') this.#executor.abort(run, cause, this.#options.times.abortGraceMs)
  }

  #queuesChanged(): void {
    this.#dispatch.returnBuffered((run) => this.#queues.isPaused(run.claimed.queue))
    this.#poller.expect()
  }
}
