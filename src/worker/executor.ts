// Runs one job: decode, validate, call the handler, and turn whatever happens into one Outcome. Never
// throws, and never waits for a handler longer than its deadline plus a grace.
import { MillraceError } from '../core/errors.ts'
import { compose } from '../core/compose.ts'
import type { AnyJob, RunMiddleware } from '../core/definition.ts'
import { DEFAULTS } from '../core/limits.ts'
import { OutcomeSignal } from '../core/outcome.ts'
import type { Outcome } from '../core/outcome.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import { validateStored } from '../core/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Tracing } from '../runtime/tracing.ts'
import { Context, RESULT_LIMIT } from './context.ts'
import type { ContextHost } from './context.ts'
import type { AbortCause, JobRun } from './job-run.ts'

export interface ExecutorOptions {
  readonly clock: Clock
  readonly host: ContextHost
  readonly middleware: readonly RunMiddleware[]
  readonly tracing?: Tracing | undefined
  /** Called exactly once per started run. */
  readonly onEnd: (run: JobRun, outcome: Outcome) => void
}

const DONE: Outcome = { kind: 'done', result: null }

export class Executor {
  readonly #options: ExecutorOptions

  constructor(options: ExecutorOptions) {
    this.#options = options
  }

  /** Starts the run; its end is reported through `onEnd`, now or later. */
  start(run: JobRun): void {
    const { definition } = run
    const { tracing } = this.#options
    if (tracing?.isOn()) run.trace = tracing.run(run.claimed, run.worker)
    if (definition === undefined) {
      const { name, queue } = run.claimed
      const message = `no handler for job '${name}' in this process; register it, or keep its queue '${queue}' for workers that have it`
      this.#end(run, { kind: 'threw', error: new MillraceError('UNKNOWN_JOB', message) })
      return
    }
    // The fast path stays synchronous up to the handler: one promise per job, the handler's own.
    try {
      const input = validateStored(
        definition.schema,
        decodePayload(run.claimed.payload),
        `the stored input of '${definition.name}'`,
      )
      if (input instanceof Promise)
        this.#follow(
          run,
          input.then((parsed) => this.#callIfLive(run, definition, parsed)),
        )
      else this.#follow(run, this.#call(run, definition, input))
    } catch (error) {
      this.#end(run, outcomeOfThrow(error))
    }
  }

  /** Tells the handler to stop and ends the run after a grace if it does not. */
  abort(run: JobRun, cause: AbortCause, graceMs: number = DEFAULTS.abortGraceMs): void {
    if (run.over || run.abortCause !== undefined) return
    run.abort(cause)
    this.#options.clock.timer(graceMs, () => {
      if (cause.outcome !== null) this.#end(run, cause.outcome)
    })
  }

  /** Validation took its time: a run that is over or told to stop must not begin now. */
  #callIfLive(run: JobRun, definition: AnyJob, input: unknown): unknown {
    if (run.over || run.abortCause !== undefined) throw run.abortCause?.reason ?? new Error('the run is over')
    return this.#call(run, definition, input)
  }

  #call(run: JobRun, definition: AnyJob, input: unknown): unknown {
    const context = new Context(run, this.#options.host, input)
    // The stored input was validated against the schema of this definition, so it is what its handler takes.
    const handler = definition.handler as unknown as (context: Context) => unknown
    if (run.trace !== undefined) return run.trace.within(() => this.#handle(handler, context))
    return this.#handle(handler, context)
  }

  #handle(handler: (context: Context) => unknown, context: Context): unknown {
    const { middleware } = this.#options
    if (middleware.length === 0) return handler(context)
    // oxlint-disable-next-line typescript/require-await -- a handler that throws must reject, not throw through the layers
    return compose(middleware, async () => handler(context))(context)
  }

  #follow(run: JobRun, returned: unknown): void {
    if (!isThenable(returned)) {
      this.#end(run, outcomeOfReturn(returned, run))
      return
    }
    returned.then(
      (value) => this.#end(run, run.over ? DONE : outcomeOfReturn(value, run)),
      (error: unknown) => this.#end(run, outcomeOfThrow(error)),
    )
  }

  #end(run: JobRun, outcome: Outcome): void {
    if (run.over) return
    run.state = 'ended'
    const { abortCause } = run
    // A handler that gives up because it was told to has no outcome of its own; one that finished anyway has.
    const gaveUp = abortCause !== undefined && outcome.kind === 'threw'
    const end = gaveUp && abortCause.outcome !== null ? abortCause.outcome : outcome
    run.trace?.ended(end)
    this.#options.onEnd(run, end)
  }
}

function outcomeOfReturn(value: unknown, { given, claimed }: JobRun): Outcome {
  if (isSignal(value)) return value.outcome
  if (given !== undefined) return { kind: 'done', result: given.result }
  if (value === undefined) return DONE
  try {
    return { kind: 'done', result: encodePayload(value, `the result of '${claimed.name}'`, RESULT_LIMIT).text }
  } catch (error) {
    // Running again would give the same result: the job is a dead letter that says what is wrong with it.
    return { kind: 'fail', error }
  }
}

function outcomeOfThrow(error: unknown): Outcome {
  return isSignal(error) ? error.outcome : { kind: 'threw', error }
}

// A revoked proxy throws at every touch, even here.
function isSignal(value: unknown): value is OutcomeSignal {
  try {
    return value instanceof OutcomeSignal
  } catch {
    return false
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
