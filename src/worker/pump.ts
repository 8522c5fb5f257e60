// The one conversation of a worker with its store: settlements out, new jobs in, fused in one round trip.
//
// A settlement starts a call at once when none is under way; during a call settlements gather and go out together
// with the next one (group commit). Where the store answers calls of a worker in order, a second call may follow
// the first before its answer, if it is worth a call: then the store works on one while the jobs of the other run.
// Where claims and settlements go to different servers, or one connection cannot keep up with a backlog, they are apart: neither
// waits for the other, up to three calls of settlements are under way if they are worth one each, and claims stop while too many of
// those are without an answer.
// A call whose fate is unknown leaves its settlements to be sent again (they are idempotent) and makes the worker
// suspect: before it claims again, and when nothing is under way any more, it asks the store what it holds and gives
// back whatever it knows nothing about.
import { decideOutcome } from '../core/decide.ts'
import type { ClaimedJob, LeaseRef, WorkerId } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { isPlanted } from '../core/planted.ts'
import { DEFAULT_POLICY } from '../core/policy.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Capabilities, ClaimReply, JobStore } from '../store/ports.ts'
import type { JobRun } from './job-run.ts'

export interface Demand {
  readonly worker: WorkerId
  readonly claimNo: number
  readonly queues: readonly string[]
  readonly limit: number
  /** Whether jobs may be handed over later if there are none now. */
  readonly stands: boolean
}

export interface PumpOptions {
  readonly runtime: Runtime
  readonly jobs: JobStore
  /** Calls that may be under way at once: more than 1 only where the store answers them in order. */
  readonly callsMax: number
  /** When claims and settlements are calls of their own. */
  readonly settlesApart: Capabilities['settlesApart']
  /** What to claim now, or null, with so many asked for and not yet answered. Asked right before each call. */
  readonly demand: (asked: number) => Demand | null
  /** A demand was answered, and what came was handed over, or nobody will ever know the answer. */
  readonly onAnswered: () => void
  /** At most so many reports of runs that wait to be sent; they go before settlements. */
  readonly reports: (most: number) => readonly Settlement[]
  /** Nobody knows what became of it: it has to be taken again. */
  readonly onReportLost: (settlement: Settlement) => void
  readonly onClaimed: (jobs: readonly ClaimedJob[], demand: Demand, reply: ClaimReply) => void
  readonly onVerdict: (settlement: Settlement, verdict: Verdict) => void
  readonly isKnown: (ref: LeaseRef) => boolean
  /** The life that claims now; null between two lives. */
  readonly life: () => WorkerId | null
  /** For a look: the claims of this life with lower numbers bring nothing any more. */
  readonly nextClaimNo: () => number
  /** What they brought is known now, or goes back. */
  readonly onLooked: (worker: WorkerId, claimNo: number) => void
  /** And it is back. */
  readonly onGivenBack: () => void
}

export interface Settlement {
  readonly transition: Transition
  /** Null: a job this worker holds without knowing it. */
  readonly run: JobRun | null
}

const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 5_000
/** The longest stretch of cycles without letting timers and input go first. */
const BREATHE_EVERY_MS = 5
/** Of one call: endings must find room beside them. */
const REPORTS_MAX = LIMITS.applyBatchMax / 2
/** A call behind another one must bring this many settlements, or find a store that has jobs for every claim. */
const WORTH_A_CALL = 32
/** The same where settlements are calls of their own: each is a commit. */
const WORTH_A_COMMIT = 100
/** Calls of settlements at once, where they are apart. */
const SETTLING_MAX = 3
/** Endings without an answer, beyond which nothing more is claimed apart from them: they would run again after a crash. */
export const UNSETTLED_MAX = LIMITS.applyBatchMax * SETTLING_MAX
const NO_SETTLEMENTS: readonly Settlement[] = []

export class Pump {
  readonly #options: PumpOptions
  #waiting: Settlement[] = []
  /** Endings that were sent once without an answer. */
  #unsent: Settlement[] = []
  #calls = 0
  /** Those of them that claim. */
  #claims = 0
  /** Those of them that settle. */
  #settlements = 0
  /** Sent and not answered. */
  #settling = 0
  /** Asked for by the calls under way. */
  #asked = 0
  /** The call under way keeps its order with one that follows it: both claim, or settle and bring no reports. */
  #mayFollow = false
  /** The last claim that was answered got all it asked for, and that was a lot. */
  #hasBacklog = false
  #frontFailed = false
  #planned = false
  #stopped = false
  #retryTimer: Timer | undefined
  readonly #failures = { claim: 0, settle: 0 }
  #suspect = false
  #lookFailed = false
  /** How often it was told to doubt: a doubt that comes during a check is not answered by it. */
  #doubts = 0
  #onIdle: (() => void)[] = []
  #lastBreathMs = 0

  constructor(options: PumpOptions) {
    this.#options = options
  }

  /** Resolves when nothing is waiting to be sent and no call is under way. */
  flushed(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    this.wake()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  get #isIdle(): boolean {
    const mustLook = this.#suspect && this.#options.life() !== null
    return this.#calls === 0 && !this.#planned && this.#waiting.length === 0 && this.#unsent.length === 0 && !mustLook
  }

  settle(settlement: Settlement): void {
    this.#waiting.push(settlement)
    this.wake()
  }

  /** There may be something to send or to claim. */
  wake(): void {
    if (this.#planned || this.#stopped || this.#retryTimer !== undefined) return
    // A microtask later, so that everything that ends in the same turn goes out together.
    this.#planned = true
    queueMicrotask(() => this.#callAll())
  }

  /** A call was lost in an earlier moment of this life: check what is held before claiming again. */
  doubt(): void {
    this.#suspect = true
    this.#doubts += 1
    this.wake()
  }

  stop(): void {
    this.#stopped = true
    this.#retryTimer?.cancel()
    this.#retryTimer = undefined
  }

  #callAll(): void {
    this.#planned = false
    while (this.#retryTimer === undefined && this.#next());
    if (this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Starts the next call. False: there is nothing to do, or it has to wait for an answer. */
  #next(): boolean {
    if (this.#suspect && this.#options.life() !== null) {
      if (this.#calls === 0) this.#look()
      return false
    }
    if (this.#isApart) return this.#claimApart() || this.#settleApart()
    if (this.#calls >= this.#options.callsMax) return false
    const isBehind = this.#calls > 0
    if (isBehind && !this.#mayGoBehind()) return false
    const demand = this.#suspect ? null : this.#options.demand(this.#asked)
    if (isBehind && demand === null) return false
    const batch = this.#nextBatch()
    if (demand === null && batch.length === 0) return false
    // Reports and endings of one run keep their order, also when the first of two calls has to be made again.
    this.#mayFollow = demand !== null && hasNoReport(batch)
    this.#begin(() => this.#exchange(demand, batch, isBehind), demand, batch)
    return true
  }

  /** What is held here? After a look that failed endings go first: the store may take them although it cannot say. */
  #look(): void {
    const batch = this.#lookFailed ? this.#nextBatch() : NO_SETTLEMENTS
    this.#lookFailed = false
    this.#mayFollow = false
    const call = batch.length === 0 ? () => this.#checkHoldings() : () => this.#exchange(null, batch, false)
    this.#begin(call, null, batch)
  }

  get #isApart(): boolean {
    const { settlesApart } = this.#options
    return settlesApart === 'always' || (settlesApart === 'backlog' && this.#hasBacklog)
  }

  #claimApart(): boolean {
    if (this.#suspect || this.#claims >= this.#options.callsMax) return false
    if (this.#claims > 0 && !this.#hasBacklog) return false
    if (this.#unsent.length + this.#waiting.length + this.#settling >= UNSETTLED_MAX) return false
    const demand = this.#options.demand(this.#asked)
    if (demand === null) return false
    this.#begin(() => this.#exchange(demand, NO_SETTLEMENTS, false), demand, NO_SETTLEMENTS)
    return true
  }

  // Several, so that the store works on one while others are made or made durable.
  #settleApart(): boolean {
    const isBehind = this.#settlements > 0
    if (this.#settlements >= SETTLING_MAX || (isBehind && !this.#maySettleBehind())) return false
    const batch = this.#nextBatch()
    if (batch.length === 0) return false
    this.#mayFollow = hasNoReport(batch)
    this.#begin(() => this.#exchange(null, batch, isBehind), null, batch)
    return true
  }

  #maySettleBehind(): boolean {
    return this.#mayFollow && this.#unsent.length === 0 && this.#waiting.length >= WORTH_A_COMMIT
  }

  #mayGoBehind(): boolean {
    if (!this.#mayFollow || this.#unsent.length > 0) return false
    return this.#hasBacklog || this.#waiting.length >= WORTH_A_CALL
  }

  #begin(call: () => Promise<void>, demand: Demand | null, { length }: readonly Settlement[]): void {
    const [kind, claims] = demand === null ? (['settle', 0] as const) : (['claim', 1] as const)
    const asked = demand?.limit ?? 0
    this.#calls += 1
    this.#claims += claims
    this.#asked += asked
    this.#settling += length
    this.#settlements += length > 0 ? 1 : 0
    void call()
      .then(
        () => {
          this.#failures[kind] = 0
          return this.#breathe()
        },
        (error: unknown) => this.#backOff(error, kind),
      )
      .then(() => {
        this.#calls -= 1
        this.#claims -= claims
        this.#asked -= asked
        this.#settling -= length
        this.#settlements -= length > 0 ? 1 : 0
        if (this.#calls === 0) this.#frontFailed = false
        this.wake()
      })
  }

  async #exchange(demand: Demand | null, batch: readonly Settlement[], isBehind: boolean): Promise<void> {
    const { runtime, jobs } = this.#options
    const settle = batch.map(({ transition }) => transition)
    runtime.failpoint('pump.before-call')
    try {
      if (demand === null) {
        this.#deliver(batch, await jobs.apply(settle))
      } else {
        const reply = await jobs.claim({ ...demand, settle })
        runtime.failpoint('pump.after-claim')
        this.#hasBacklog = demand.limit >= WORTH_A_CALL && reply.jobs.length >= demand.limit
        // First what was claimed: a job that must run alone counts everything that is held.
        this.#options.onClaimed(reply.jobs, demand, reply)
        this.#deliver(batch, reply.verdicts)
      }
    } catch (error) {
      const endings = batch.filter(({ transition }) => transition.edge !== 'report')
      for (const settlement of batch)
        if (settlement.transition.edge === 'report') this.#options.onReportLost(settlement)
      // They go out again in the order they were made.
      if (isPlanted('settlement-forgotten')) this.#unsent = []
      else this.#unsent = isBehind && this.#frontFailed ? [...this.#unsent, ...endings] : [...endings, ...this.#unsent]
      this.#frontFailed = true
      if (demand !== null && !isPlanted('claim-not-recovered')) this.#suspect = true
      throw error
    } finally {
      if (demand !== null) this.#options.onAnswered()
    }
  }

  #nextBatch(): readonly Settlement[] {
    // Reports first: whatever ends a run comes after what it reported.
    const batch = [...this.#options.reports(REPORTS_MAX)]
    const areMore = batch.length >= REPORTS_MAX
    this.#unsent = takeEndings(this.#unsent, batch, areMore)
    this.#waiting = takeEndings(this.#waiting, batch, areMore)
    return batch
  }

  #isWaiting({ jobId, lease }: LeaseRef): boolean {
    const isIt = ({ transition }: Settlement): boolean =>
      transition.jobId === jobId && transition.guard.lease === lease && transition.edge !== 'report'
    return this.#unsent.some(isIt) || this.#waiting.some(isIt)
  }

  #deliver(batch: readonly Settlement[], verdicts: readonly Verdict[]): void {
    const { onVerdict } = this.#options
    for (let index = 0; index < batch.length; index++) onVerdict(batch[index]!, verdicts[index] ?? 'missing')
  }

  // Nothing is being claimed meanwhile: a job held in the store and unknown here came with a lost reply.
  async #checkHoldings(): Promise<void> {
    const { jobs, isKnown, onLooked, onGivenBack } = this.#options
    const worker = this.#options.life()
    if (worker === null) return
    const claimNo = this.#options.nextClaimNo()
    const doubts = this.#doubts
    this.#lookFailed = true
    const held = await jobs.holdings(worker, claimNo)
    onLooked(worker, claimNo)
    const unknown = held.filter((ref) => !isKnown(ref) && !this.#isWaiting(ref)).map(giveBack)
    for (let from = 0; from < unknown.length; from += LIMITS.applyBatchMax) {
      await jobs.apply(unknown.slice(from, from + LIMITS.applyBatchMax))
    }
    this.#lookFailed = false
    this.#suspect = this.#doubts !== doubts
    onGivenBack()
  }

  async #breathe(): Promise<void> {
    const { clock } = this.#options.runtime
    if (clock.monoMs() - this.#lastBreathMs < BREATHE_EVERY_MS) return
    await clock.breathe()
    this.#lastBreathMs = clock.monoMs()
  }

  #backOff(error: unknown, kind: 'claim' | 'settle'): void {
    if (this.#retryTimer !== undefined || this.#stopped) return
    const { runtime } = this.#options
    const failures = ++this.#failures[kind]
    const ceilingMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures - 1, 10))
    const waitMs = ceilingMs * (0.5 + runtime.random() / 2)
    runtime.logger.warn({ failures, waitMs, error }, 'the store did not take a call of the worker; trying again')
    this.#retryTimer = runtime.clock.timer(waitMs, () => {
      this.#retryTimer = undefined
      this.wake()
    })
  }
}

/** Fills the batch from this line and answers the rest of it. While reports are left behind, so are the ends of their runs. */
function takeEndings(line: Settlement[], batch: Settlement[], areReportsLeft: boolean): Settlement[] {
  const room = LIMITS.applyBatchMax - batch.length
  if (!areReportsLeft) {
    batch.push(...line.splice(0, room))
    return line
  }
  const mayGo = line.filter(({ run }) => run === null || !run.hasUnsentReport).slice(0, room)
  batch.push(...mayGo)
  const gone = new Set(mayGo)
  return line.filter((settlement) => !gone.has(settlement))
}

function hasNoReport(batch: readonly Settlement[]): boolean {
  return !batch.some(({ transition }) => transition.edge === 'report')
}

function giveBack({ jobId, lease }: LeaseRef): Transition {
  const facts = { id: jobId, lease, attemptCount: 0, maxAttempts: 1, crashCount: 0 }
  return decideOutcome(facts, { outcome: { kind: 'returned' }, ranMs: 0, nowMs: 0 }, DEFAULT_POLICY, () => 0)
}
