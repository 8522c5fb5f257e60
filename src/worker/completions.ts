// Jobs that a handler completes inside a transaction of its own (`completeWith`).
//
// Nobody tells the worker whether such a transaction is committed. So a completion is never sent a second time: when the
// handler has ended, the store is looked at, and a job that is completed by this very run was committed. Otherwise the
// decision for a run that did not complete is sent, under the guard of the lease. If the transaction is still open, its
// lock on the job makes that call wait; after the commit it is refused, after a rollback it is applied. Each goes in a
// call of its own: what waits for somebody's transaction must not hold up the settlements of other jobs.
import { decideNotCommitted, decideOutcome } from '../core/decide.ts'
import { MillraceError } from '../core/errors.ts'
import type { StoredJob } from '../core/job.ts'
import type { JsonText } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import type { Outcome } from '../core/outcome.ts'
import type { RunPolicy } from '../core/policy.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import type { JobRun } from './job-run.ts'
import type { Settlement } from './pump.ts'
import { openReport } from './reports.ts'

export interface CompletionsOptions {
  readonly runtime: Runtime
  readonly backend: Pick<Backend, 'jobs' | 'query' | 'inside'>
  readonly connection: string
  readonly policyOf: (run: JobRun) => RunPolicy
  readonly onVerdict: (settlement: Settlement, verdict: Verdict) => void
}

/** What became of the transaction of a run that has ended? */
interface Question {
  readonly run: JobRun
  readonly completion: Transition
  readonly otherwise: Transition
  /** The answer to `otherwise`, when it was not applied. */
  refused: Verdict | undefined
  failures: number
}

/** Each may keep a connection waiting, until the store gives up or the transaction ends. */
const ASKED_MAX = 4
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 5_000

export class Completions {
  readonly #options: CompletionsOptions
  #unread: Question[] = []
  #isReading = false
  readonly #unasked: Question[] = []
  #asked = 0
  #open = 0
  #stopped = false
  #onIdle: (() => void)[] = []
  readonly #timers = new Set<Timer>()

  constructor(options: CompletionsOptions) {
    this.#options = options
  }

  /** Sends the completion inside the transaction. Throws LEASE_LOST when it was refused. */
  async complete(run: JobRun, tx: object, result: JsonText | null): Promise<void> {
    const { runtime, backend, connection, policyOf } = this.#options
    if (backend.inside === undefined) throw notTransactional(connection)
    const inside = backend.inside(tx)
    if (run.over) throw leaseLost('it has ended')
    const { clock, random } = runtime
    const end = { outcome: { kind: 'done', result }, ranMs: clock.monoMs() - run.startedMs, nowMs: 0 } as const
    const completion = decideOutcome(run.claimed, end, policyOf(run), random)
    const before = run.completion
    // From here on only the store knows, also when the answer is lost.
    run.completion = completion
    // What it reported goes along, also what is on its way: that finds the job locked, or ended. It stays with the run:
    // after a rollback it has to be sent again.
    const verdict = (await inside.apply([...openReport(run), completion])).at(-1) ?? 'missing'
    if (verdict === 'applied') return
    if (verdict === 'already') throw leaseLost('an earlier transaction of it has completed the job')
    run.completion = before
    throw leaseLost('the job was given to another worker, cancelled or deleted')
  }

  /** The run has ended; the verdict follows when the fate of its transaction is known. */
  settle(run: JobRun, completion: Transition, outcome: Outcome, ranMs: number): void {
    const { runtime, policyOf } = this.#options
    const end = { outcome, ranMs, nowMs: runtime.clock.nowMs() }
    const otherwise = decideNotCommitted(run.claimed, end, policyOf(run), runtime.random)
    this.#open += 1
    this.#read({ run, completion, otherwise, refused: undefined, failures: 0 })
  }

  /** Resolves when the fate of every ended run is known. */
  flushed(): Promise<void> {
    return this.#open === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve))
  }

  stop(): void {
    this.#stopped = true
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
  }

  #read(question: Question): void {
    this.#unread.push(question)
    if (this.#isReading) return
    this.#isReading = true
    // A microtask later, so that runs that end in the same turn are read together.
    queueMicrotask(() => void this.#readAll())
  }

  async #readAll(): Promise<void> {
    const { query } = this.#options.backend
    while (this.#unread.length > 0) {
      const batch = this.#unread.splice(0, LIMITS.pageSizeMax)
      let jobs: readonly (StoredJob | null)[]
      try {
        jobs = await query.get(batch.map(({ run }) => run.claimed.id))
      } catch (error) {
        for (const question of batch) this.#later(question, error, () => this.#read(question))
        continue
      }
      for (const [index, question] of batch.entries()) this.#seen(question, jobs[index] ?? null)
    }
    this.#isReading = false
  }

  #seen(question: Question, job: StoredJob | null): void {
    const { run, completion, otherwise, refused } = question
    // Only a job that has ended can be gone.
    if (job === null || (job.status === 'completed' && job.lease === run.claimed.lease)) {
      this.#answer(question, completion, 'applied')
    } else if (refused !== undefined) {
      this.#answer(question, otherwise, refused)
    } else {
      this.#unasked.push(question)
      this.#askNext()
    }
  }

  #askNext(): void {
    while (this.#asked < ASKED_MAX && this.#unasked.length > 0) {
      const question = this.#unasked.shift()!
      this.#asked += 1
      void this.#ask(question).then(() => {
        this.#asked -= 1
        this.#askNext()
      })
    }
  }

  /** Never rejects. */
  async #ask(question: Question): Promise<void> {
    const { run, otherwise } = question
    let verdicts: readonly Verdict[]
    try {
      verdicts = await this.#options.backend.jobs.apply([...openReport(run), otherwise])
    } catch (error) {
      this.#later(question, error, () => {
        this.#unasked.push(question)
        this.#askNext()
      })
      return
    }
    const verdict = verdicts.at(-1) ?? 'missing'
    if (verdict === 'stale' || verdict === 'missing') {
      question.refused = verdict
      this.#read(question)
      return
    }
    // `already` is the answer to a call whose first answer was lost: then it was applied, and the job not completed.
    this.#answer(question, otherwise, verdict)
  }

  #answer({ run }: Question, transition: Transition, verdict: Verdict): void {
    this.#open -= 1
    this.#options.onVerdict({ run, transition }, verdict)
    if (this.#open === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #later(question: Question, error: unknown, again: () => void): void {
    if (this.#stopped) return
    const { clock, random, logger } = this.#options.runtime
    question.failures += 1
    const ceilingMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(question.failures - 1, 10))
    const { id: jobId, name } = question.run.claimed
    logger.warn(
      { jobId, name, failures: question.failures, error },
      'it is not known yet whether the transaction that completes a job was committed: is it still open? Asking again',
    )
    const timer = clock.timer(ceilingMs * (0.5 + random() / 2), () => {
      this.#timers.delete(timer)
      again()
    })
    this.#timers.add(timer)
  }
}

function leaseLost(why: string): MillraceError {
  return new MillraceError('LEASE_LOST', `this run cannot complete its job: ${why}; roll the transaction back`)
}

function notTransactional(connection: string): MillraceError {
  const message =
    `connection ${connection} cannot complete a job inside your transaction, because its jobs are not kept in PostgreSQL: ` +
    'return from the handler instead'
  return new MillraceError('NOT_SUPPORTED', message, { details: { connection } })
}
