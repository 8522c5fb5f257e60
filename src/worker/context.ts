// What a handler sees of its run. Everything that costs something is made when it is first asked for.
import { userMeta } from '../core/carried.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import type { JobLog, RunContext, RunServices, RunningJob } from '../core/definition.ts'
import type { LogLine } from '../core/job.ts'
import type { JsonText } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { encodePayload } from '../core/payload.ts'
import type { Clock } from '../runtime/clock.ts'
import type { JobRun } from './job-run.ts'

export interface ContextHost {
  readonly clock: Clock
  readonly services: (run: JobRun) => RunServices
  /** Something of this run waits to be sent to the store. */
  readonly onReport: (run: JobRun) => void
  /** The deadline of this run was moved. */
  readonly onExtend: (run: JobRun) => void
  /** Completes the job inside a transaction; absent: there is no store, the result is kept for the end of the run. */
  readonly complete?: (run: JobRun, tx: object, result: JsonText | null) => Promise<void>
}

export const RESULT_LIMIT = { maxBytes: LIMITS.resultBytesMax, code: 'RESULT_TOO_LARGE' } as const
const PROGRESS_LIMIT = { maxBytes: LIMITS.progressBytesMax, code: 'PROGRESS_TOO_LARGE' } as const

export class Context implements RunContext<unknown> {
  readonly input: unknown
  readonly #run: JobRun
  readonly #host: ContextHost
  #job: RunningJob | undefined
  #services: RunServices | undefined
  #log: JobLog | undefined

  constructor(run: JobRun, host: ContextHost, input: unknown) {
    this.#run = run
    this.#host = host
    this.input = input
  }

  get job(): RunningJob {
    const { claimed } = this.#run
    this.#job ??= {
      id: claimed.id,
      name: claimed.name,
      queue: claimed.queue,
      priority: claimed.priority,
      attempt: this.attempt,
      maxAttempts: claimed.maxAttempts,
      enqueuedAt: new Date(claimed.enqueuedAtMs),
      runAt: new Date(claimed.runAtMs),
      tags: claimed.tags,
      meta: userMeta(claimed.meta),
      batch: claimed.batch,
      worker: this.#run.worker,
    }
    return this.#job
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  get attempt(): number {
    return this.#run.claimed.attemptCount + 1
  }

  get maxAttempts(): number {
    return this.#run.claimed.maxAttempts
  }

  get willRetry(): boolean {
    return this.attempt < this.maxAttempts
  }

  get log(): JobLog {
    this.#log ??= {
      debug: (message) => this.#addLine('debug', message),
      info: (message) => this.#addLine('info', message),
      warn: (message) => this.#addLine('warn', message),
      error: (message) => this.#addLine('error', message),
    }
    return this.#log
  }

  // Handlers take the context apart: `run({ progress })`. So nothing in it may need `this`.
  get progress(): RunContext<unknown>['progress'] {
    return (value: unknown) => {
      const { text } = encodePayload(value, 'progress', PROGRESS_LIMIT)
      if (this.#run.over) return
      this.#run.progress = text
      this.#host.onReport(this.#run)
    }
  }

  get extend(): RunContext<unknown>['extend'] {
    return (timeout: Duration) => {
      const timeoutMs = parseDuration(timeout, 'extend', { minMs: 1, maxMs: LIMITS.timeoutMaxMs })
      this.#run.dueMs = this.#host.clock.monoMs() + timeoutMs
      this.#host.onExtend(this.#run)
    }
  }

  get completeWith(): RunContext<unknown>['completeWith'] {
    return async (tx: object, result?: unknown) => {
      const what = `the result of '${this.#run.claimed.name}'`
      const text = result === undefined ? null : encodePayload(result, what, RESULT_LIMIT).text
      await this.#host.complete?.(this.#run, tx, text)
      this.#run.given = { result: text }
    }
  }

  get enqueue(): RunServices['enqueue'] {
    return this.#reach().enqueue
  }

  get parents(): RunServices['parents'] {
    return this.#reach().parents
  }

  get idempotent(): RunServices['idempotent'] {
    return this.#reach().idempotent
  }

  get metadata(): RunServices['metadata'] {
    return this.#reach().metadata
  }

  #reach(): RunServices {
    this.#services ??= this.#host.services(this.#run)
    return this.#services
  }

  #addLine(level: LogLine['level'], message: string): void {
    const run = this.#run
    const count = run.logLinesSent + (run.logLines?.length ?? 0)
    if (run.over || count >= LIMITS.logLinesMax) return
    run.logLines ??= []
    run.logLines.push({ atMs: this.#host.clock.nowMs(), attempt: this.attempt, level, message: cut(String(message)) })
    this.#host.onReport(run)
  }
}

// Characters, not bytes, are counted here: cutting at a third keeps any text under the byte limit.
function cut(message: string): string {
  const charsMax = Math.floor(LIMITS.logLineBytesMax / 3)
  if (message.length <= charsMax && Buffer.byteLength(message) <= LIMITS.logLineBytesMax) return message
  return `${message.slice(0, charsMax)}… (truncated)`
}
