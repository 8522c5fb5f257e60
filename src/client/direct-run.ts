// `job.run(input)`: the handler here and now, without a queue, for tests and for code that needs the
// work done inline. Input and result take the same way through JSON as they would through a store, so
// what works here works there.
import type { DirectRunOptions, JobDefinition, RunContext, RunningJob } from '../core/definition.ts'
import { parseDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId } from '../core/job.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { OutcomeSignal } from '../core/outcome.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import { validateStored } from '../core/schema.ts'

export async function runDirectly<Input, Parsed, Result>(
  definition: JobDefinition<string, Input, Parsed, Result>,
  input: Input,
  options: DirectRunOptions = {},
): Promise<Result> {
  const limit = { maxBytes: LIMITS.payloadBytesMax, code: 'PAYLOAD_TOO_LARGE' } as const
  const { text } = encodePayload(input === undefined ? null : input, 'payload', limit)
  // The schema of the definition produces `Parsed`; without one the caller's type is the promise.
  const what = `the input of ${definition.name}`
  const parsed = (await validateStored(definition.schema, decodePayload(text), what)) as Parsed
  const given: Given<Result> = {}
  const returned = await definition.handler(detachedContext(definition, parsed, given, options.signal))
  if (returned instanceof OutcomeSignal) throw returned
  return throughJson('result' in given ? given.result : returned)
}

/** What `completeWith` was given: the result, whatever the handler returns. */
interface Given<Result> {
  result?: Result
}

function throughJson<Result>(result: Result | undefined): Result {
  // A handler that returns nothing has the type of nothing.
  if (result === undefined) return result as Result
  const { text } = encodePayload(result, 'result', { maxBytes: LIMITS.resultBytesMax, code: 'RESULT_TOO_LARGE' })
  // The round trip that a stored result takes; the type is the one a producer would be given.
  return decodePayload(text) as Result
}

// No store minted it: it is recognisable in whatever the handler logs.
const DIRECT_ID = '00000000-0000-7000-8000-000000000000' as JobId
const EPOCH_MS = 0
const nothing = (): void => undefined

function detachedContext<Parsed, Result>(
  definition: JobDefinition<string, never, Parsed, Result>,
  input: Parsed,
  given: Given<Result>,
  signal = new AbortController().signal,
): RunContext<Parsed> {
  const unsupported = (what: string) => (): never => {
    const message = `${what} needs a queue, but ${definition.name} was called directly with run(); enqueue it instead`
    throw new MillraceError('NOT_SUPPORTED', message, { details: { what } })
  }
  return {
    input,
    job: detachedJob(definition),
    signal,
    attempt: 1,
    maxAttempts: 1,
    willRetry: false,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    progress(value) {
      encodePayload(value, 'progress', { maxBytes: LIMITS.progressBytesMax, code: 'PROGRESS_TOO_LARGE' })
    },
    extend(timeout) {
      parseDuration(timeout, 'extend', { minMs: 1, maxMs: LIMITS.timeoutMaxMs })
    },
    // There is no job to complete: the transaction is the caller's own affair.
    async completeWith(_, result) {
      given.result = result as Result // as a stored result: by the word of the handler
    },
    enqueue: unsupported('enqueue()'),
    parents: unsupported('parents()'),
    // One direct call is one run: there is no other to share the result with.
    idempotent: async (_, fn) => fn(),
    metadata: {
      get: unsupported('metadata'),
      set: unsupported('metadata'),
      increment: unsupported('metadata'),
      remove: unsupported('metadata'),
      entries: unsupported('metadata'),
    },
  }
}

function detachedJob(definition: JobDefinition<string, never, never, unknown>): RunningJob {
  return {
    id: DIRECT_ID,
    name: definition.name,
    queue: definition.queue,
    priority: definition.priority ?? DEFAULTS.priority,
    attempt: 1,
    maxAttempts: 1,
    enqueuedAt: new Date(EPOCH_MS),
    runAt: new Date(EPOCH_MS),
    tags: definition.tags,
    meta: null,
    batch: null,
    worker: null,
  }
}
