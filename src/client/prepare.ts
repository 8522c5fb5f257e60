// From a call to a NewJob: the input is validated and encoded, options and defaults are settled. Pure
// but for the id; nothing is written here. Synchronous when the schema is.
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import type { Dependency, JobId, NewJob, ScheduleRef } from '../core/job.ts'
import type { JsonText } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkKey, checkTags, invalidOption } from '../core/names.ts'
import { decodePayload, encodePayload } from '../core/payload.ts'
import type { SecretGuard } from '../core/payload.ts'
import { validate, validateStored } from '../core/schema.ts'
import { contentKey } from '../core/unique.ts'
import type { UniqueHold } from '../core/unique.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Connections } from './connections.ts'
import { META_LIMIT, NO_OPTIONS, checkEnqueueOptions } from './enqueue-options.ts'
import type { CheckedOptions, EnqueueOptions } from './enqueue-options.ts'
import { checkUniqueTerms } from './unique-terms.ts'

export interface Prepared {
  readonly job: NewJob
  readonly connection: string
  /** The caller chose the id, so `already` is news to him. */
  readonly ownId: boolean
}

/** What only Millrace itself may say about a new job. */
export interface Extras {
  readonly insideBatch?: true
  readonly schedule?: ScheduleRef
  readonly dependsOn?: NewJob['dependsOn']
  readonly id?: JobId
}

const NO_EXTRAS: Extras = {}

export interface PrepareParts {
  readonly runtime: Runtime
  readonly connections: Connections
  readonly secrets: SecretGuard
}

export type Prepare = (
  definition: AnyJob,
  input: unknown,
  options?: EnqueueOptions,
  extras?: Extras,
) => Prepared | Promise<Prepared>

export function createPrepare({ runtime, connections, secrets }: PrepareParts): Prepare {
  const limits = {
    payload: { maxBytes: LIMITS.payloadBytesMax, code: 'PAYLOAD_TOO_LARGE', secrets },
    meta: { ...META_LIMIT, secrets },
  } as const

  /** What was warned about: once per process is a warning, once per job is noise. */
  const warned = new Set<string>()

  function encode({ name }: AnyJob, what: 'payload' | 'meta', value: unknown): JsonText {
    const { text, warnings } = encodePayload(value, what, limits[what])
    if (warnings.length > 0 && !warned.has(`${what} ${name}`)) {
      warned.add(`${what} ${name}`)
      runtime.logger.warn({ job: name, fields: warnings }, `the ${what} of ${name} looks like it holds secrets`)
    }
    return text
  }

  return (definition, input, options, extras = NO_EXTRAS) => {
    const checked =
      options === undefined
        ? NO_OPTIONS
        : checkEnqueueOptions(options, runtime.clock.nowMs(), (meta) => encode(definition, 'meta', meta))
    const own = connections.ofJob(definition)
    const connection =
      checked.connections === undefined
        ? own
        : connections.common([own, ...checked.connections], `the job ${definition.name} with its batch and parents`)
    const finish = (): Prepared => {
      // JSON has no undefined: a job without input has the payload null.
      const payload = encode(definition, 'payload', input === undefined ? null : input)
      const id = extras.id ?? checked.id ?? (runtime.newId() as JobId) // newId mints UUIDs
      return {
        job: newJob(definition, input, payload, checked, extras, id),
        connection,
        ownId: checked.id !== undefined,
      }
    }
    // The worker validates again and needs what the producer passed, so the parsed value is dropped.
    // The input of a schedule has already been in a store.
    const check = extras.schedule === undefined ? validate : validateStored
    const parsed = check(definition.schema, input, `the input of ${definition.name}`)
    return parsed instanceof Promise ? parsed.then(finish) : finish()
  }
}

function newJob(
  definition: AnyJob,
  input: unknown,
  payload: JsonText,
  checked: CheckedOptions,
  extras: Extras,
  id: JobId,
): NewJob {
  const priority = checked.priority ?? definition.priority
  const maxAttempts = checked.maxAttempts ?? definition.retry?.attempts
  const tags = checked.tags === undefined ? definition.tags : checkTags([...definition.tags, ...checked.tags])
  const group = checked.group ?? keyFrom(definition.group, input, 'group')
  const limitKey = checked.limitKey ?? keyFrom(definition.limitKey, input, 'limitKey')
  const unique = uniqueHold(definition, input, payload, checked.unique)
  const dependsOn = dependencies(checked.dependsOn, extras.dependsOn)
  const timeoutMs = checked.timeoutMs ?? definition.timeoutMs
  // Field by field, not as a dozen spreads of what is mostly absent: every job of a bulk call comes by here.
  const job: Draft = { id, queue: definition.queue, name: definition.name, payload, timeoutMs }
  if (id === checked.id) job.ownId = true
  if (priority !== undefined) job.priority = priority
  if (maxAttempts !== undefined) job.maxAttempts = maxAttempts
  if (checked.delayMs !== undefined) job.delayMs = checked.delayMs
  if (checked.runAtMs !== undefined) job.runAtMs = checked.runAtMs
  if (tags.length > 0) job.tags = tags
  if (checked.meta !== undefined) job.meta = checked.meta
  if (checked.batch !== undefined) job.batch = checked.batch
  if (extras.insideBatch) job.insideBatch = true
  if (dependsOn.length > 0) job.dependsOn = dependsOn
  if (group !== undefined) job.group = group
  if (limitKey !== undefined) job.limitKey = limitKey
  if (unique !== undefined) job.unique = unique
  if (extras.schedule !== undefined) job.schedule = extras.schedule
  return job
}

type Draft = { -readonly [Field in keyof NewJob]: NewJob[Field] }

const NO_PARENTS: readonly Dependency[] = []

/** Each parent once: it opens the gate once. */
function dependencies(asked = NO_PARENTS, own = NO_PARENTS): readonly Dependency[] {
  if (own.length === 0) return asked
  const parents = new Map([...asked, ...own].map((one) => [one.parent, one]))
  if (parents.size > LIMITS.dependenciesMax) {
    throw invalidOption('children', parents.size, `at most ${LIMITS.dependenciesMax} jobs`)
  }
  return [...parents.values()]
}

function keyFrom(keyOf: ((input: never) => string) | undefined, input: unknown, what: string): string | undefined {
  // `AnyJob` has forgotten the input type; the input was validated against the schema of this very job.
  return keyOf === undefined ? undefined : checkKey(keyOf(input as never), what)
}

function uniqueHold(
  definition: AnyJob,
  input: unknown,
  payload: JsonText,
  asked: CheckedOptions['unique'],
): UniqueHold | undefined {
  const usual = definition.unique
  if (asked === false || (asked === undefined && usual === undefined)) return undefined
  const terms = typeof asked === 'object' ? asked : {}
  const key = typeof asked === 'string' ? asked : terms.key
  const fallback = usual && { mode: usual.mode, windowMs: usual.windowMs, onDuplicate: usual.onDuplicate }
  return { key: key ?? usualKey(definition, input, payload), ...checkUniqueTerms(terms, fallback) }
}

function usualKey(definition: AnyJob, input: unknown, payload: JsonText): string {
  const by = definition.unique?.by ?? 'content'
  if (by === 'content') return contentKey(definition.name, decodePayload(payload))
  return checkKey(by(input as never), 'unique key') // as in keyFrom
}

/** At most so many jobs in one call. */
export function checkBulkSize(count: number): void {
  if (count <= LIMITS.bulkJobsMax) return
  const message = `one call may carry at most ${LIMITS.bulkJobsMax} jobs, not ${count}: split it into chunks`
  throw new MillraceError('BULK_TOO_LARGE', message, { details: { count, max: LIMITS.bulkJobsMax } })
}
