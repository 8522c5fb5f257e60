// `idempotent(key, fn)`: the work behind a key is done once. A note per key is free, `running` under a
// holder, `done` with the value, or `failed` with the error. A later run of the same job takes a running
// note over at once, because its lease proves that the former run is over; everybody else waits.
import { toAttemptError } from '../core/attempt-error.ts'
import type { AttemptError } from '../core/attempt-error.ts'
import type { IdempotentOptions, RunContext } from '../core/definition.ts'
import { formatDuration, parseDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId, LeaseNumber } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkKey, checkKnownOptions, invalidOption } from '../core/names.ts'
import { OutcomeSignal } from '../core/outcome.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import { sleep } from '../runtime/clock.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Note, NoteStore, NoteWrite } from '../store/note-store.ts'
import { storedError } from './results.ts'
import { retryStore } from './store-retry.ts'

export interface IdempotencyHolder {
  readonly jobId: JobId
  readonly lease: LeaseNumber
  /** The job kind: keys of different kinds never meet. */
  readonly kind: string
  /** How long a running note blocks others when its holder disappears, e.g. the timeout of the job. */
  readonly ttlMs: number
  /** Is the run still going on? A handler that was given up must not keep its keys. Default: yes. */
  readonly isLive?: () => boolean
}

type State =
  | { readonly state: 'running'; readonly job: JobId; readonly lease: number; readonly call: string }
  | { readonly state: 'done'; readonly value?: Json | undefined }
  | { readonly state: 'failed'; readonly error: AttemptError }

interface Terms {
  readonly waitMs: number
  readonly keepMs: number
  readonly onFailure: 'rethrow' | 'retry'
}

const POLL_MIN_MS = 25
const POLL_MAX_MS = 500

export function createIdempotent(
  notes: NoteStore,
  runtime: Runtime,
  holder: IdempotencyHolder,
): RunContext<unknown>['idempotent'] {
  return async (key, fn, options = {}) => {
    checkKey(key, 'idempotency key')
    const once = new Once(notes, runtime, holder, key, checkTerms(options))
    const acquired = await once.acquire()
    // Kept by an earlier call with the same key; its type is the caller's promise.
    return 'value' in acquired ? (acquired.value as never) : once.run(acquired.version, fn)
  }
}

/** One call under one key: free → running (ours) → done or failed. */
class Once {
  readonly #notes: NoteStore
  readonly #runtime: Runtime
  readonly #holder: IdempotencyHolder
  readonly #note: { readonly space: string; readonly key: string }
  readonly #terms: Terms
  readonly #call: string

  constructor(notes: NoteStore, runtime: Runtime, holder: IdempotencyHolder, key: string, terms: Terms) {
    this.#notes = notes
    this.#runtime = runtime
    this.#holder = holder
    this.#note = { space: `once:${holder.kind}`, key }
    this.#terms = terms
    this.#call = runtime.newId()
  }

  /** The value if it is there, the version that is ours if we may run now. */
  async acquire(): Promise<{ readonly value: Json | undefined } | { readonly version: number }> {
    const { clock, random } = this.#runtime
    const { waitMs, onFailure } = this.#terms
    const startMs = clock.monoMs()
    for (let pollMs = POLL_MIN_MS; ; pollMs = Math.min(pollMs * 2, POLL_MAX_MS)) {
      const note = await this.#read()
      const state = note && decodeState(note)
      if (state?.state === 'done') return { value: state.value }
      if (state?.state === 'failed' && onFailure === 'rethrow') throw failedBefore(this.#note.key, state.error)
      if (state?.state !== 'running' || mayTakeOver(state, this.#holder)) {
        const version = await this.#take(note)
        if (version !== null) return { version }
      }
      const leftMs = waitMs - (clock.monoMs() - startMs)
      if (leftMs <= 0) throw busy(this.#note.key, waitMs)
      await sleep(clock, Math.min(leftMs, pollMs * (0.75 + random() / 2)))
    }
  }

  async run<Value>(version: number, fn: () => Promise<Value> | Value): Promise<Value> {
    let value: Json | undefined
    const keeper = this.#keepRunning(version)
    try {
      value = throughJson(await fn())
      version = await keeper.stop()
    } catch (error) {
      version = await keeper.stop()
      // "Later" and "not now" are no outcome of the work: the note lapses at once and the next run starts afresh.
      const isOutcome = !(error instanceof OutcomeSignal) || error.outcome.kind === 'fail'
      const failed: State = { state: 'failed', error: toAttemptError(error, 'unknown') }
      // The error of the work is the one to tell, whatever the store says.
      await this.#keep(version, failed, isOutcome ? this.#terms.keepMs : 1).catch(() => undefined)
      throw error
    }
    await this.#keep(version, { state: 'done', value }, this.#terms.keepMs)
    // What a re-run would be given; `Value` is the caller's promise about it.
    return value as Value
  }

  async #take(before: Note | null): Promise<number | null> {
    const { jobId: job, lease, ttlMs } = this.#holder
    const mine: State = { state: 'running', job, lease, call: this.#call }
    const version = await this.#put({ value: JSON.stringify(mine), expectVersion: before?.version ?? 0, ttlMs })
    if (version !== null) return version
    // Refused by another, or by our own first try whose reply was lost: the call id tells them apart.
    const now = await this.#read()
    const state = now && decodeState(now)
    return state?.state === 'running' && state.call === this.#call ? (now?.version ?? null) : null
  }

  /** Renews the running note while the work goes on: a handler may take longer than the timeout it began with. */
  #keepRunning(first: number): { stop(): Promise<number> } {
    const { clock, logger } = this.#runtime
    const { jobId: job, lease, ttlMs } = this.#holder
    const mine: State = { state: 'running', job, lease, call: this.#call }
    let version = first
    let current = Promise.resolve()
    let timer: Timer | undefined
    const renew = async (): Promise<void> => {
      if (this.#holder.isLive?.() === false) return
      const renewed = await this.#put({ value: JSON.stringify(mine), expectVersion: version, ttlMs })
      if (renewed === null) return
      version = renewed
      arm()
    }
    const arm = (): void => {
      timer = clock.timer(ttlMs / 3, () => {
        current = renew().catch((error: unknown) => {
          logger.warn({ key: this.#note.key, error }, 'an idempotency note could not be renewed')
          arm()
        })
      })
    }
    arm()
    return {
      async stop() {
        timer?.cancel()
        await current
        timer?.cancel()
        return version
      },
    }
  }

  async #keep(version: number, state: State, ttlMs: number): Promise<void> {
    const write = { value: JSON.stringify(state), ttlMs }
    const kept = await this.#put({ ...write, expectVersion: version })
    // Our running note may have expired meanwhile: then nobody else has it, and the outcome is still worth keeping.
    if (kept === null) await this.#put({ ...write, expectVersion: 0 })
  }

  #read(): Promise<Note | null> {
    return retryStore(this.#runtime, () => this.#notes.get(this.#note.space, this.#note.key))
  }

  #put(write: Omit<NoteWrite, 'space' | 'key'>): Promise<number | null> {
    return retryStore(this.#runtime, () => this.#notes.put({ ...this.#note, ...write }))
  }
}

/** A first run and a re-run must see the same value. */
function throughJson(returned: unknown): Json | undefined {
  if (returned === undefined) return undefined
  const limit = { maxBytes: LIMITS.noteBytesMax, code: 'RESULT_TOO_LARGE' } as const
  return decodePayload(encodePayload(returned, 'idempotent result', limit).text)
}

function mayTakeOver(state: Extract<State, { state: 'running' }>, holder: IdempotencyHolder): boolean {
  return state.job === holder.jobId && state.lease < holder.lease
}

function checkTerms(options: IdempotentOptions): Terms {
  checkKnownOptions(options, ['wait', 'keep', 'onFailure'], 'idempotent()')
  const { onFailure = 'rethrow' } = options
  if (onFailure !== 'rethrow' && onFailure !== 'retry')
    throw invalidOption('onFailure', onFailure, "'rethrow' or 'retry'")
  return {
    waitMs: parseDuration(options.wait ?? DEFAULTS.idempotencyWaitMs, 'wait', { maxMs: LIMITS.timeoutMaxMs }),
    keepMs: parseDuration(options.keep ?? DEFAULTS.idempotencyLifeMs, 'keep', { minMs: 1 }),
    onFailure,
  }
}

function decodeState(note: Note): State {
  // Decoded boundary: only this file writes notes in these spaces.
  return JSON.parse(note.value) as State
}

function failedBefore(key: string, error: AttemptError): MillraceError {
  const message = `the work behind ${JSON.stringify(key)} failed before (${error.name}: ${error.message}) and that is kept; use onFailure: 'retry' to run it again`
  return new MillraceError('IDEMPOTENCY_FAILED', message, { cause: storedError(error), details: { key } })
}

function busy(key: string, waitMs: number): MillraceError {
  const message = `another run holds ${JSON.stringify(key)} and did not finish within ${formatDuration(waitMs)}`
  return new MillraceError('IDEMPOTENCY_BUSY', message, { retryable: true, details: { key, waitMs } })
}
