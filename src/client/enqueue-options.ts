// The options of one enqueue, checked field by field before anything is written. What is left out is
// decided later by the job kind and then by the queue.
import { checkMetaKeys } from '../core/carried.ts'
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import type { BatchId, Dependency, JobId, ParentFailurePolicy } from '../core/job.ts'
import type { Json, JsonText } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKey, checkKnownOptions, checkTags, invalidOption } from '../core/names.ts'
import { encodePayload } from '../core/payload.ts'
import { parsePriority } from '../core/priority.ts'
import type { Priority } from '../core/priority.ts'
import { checkBatchId, checkJobId, checkJobRef } from './ids.ts'
import type { JobRef } from './ids.ts'
import type { UniqueTerms } from './unique-terms.ts'

export interface EnqueueOptions {
  /** 0 (most urgent) … 32767, or a word. Default: of the job kind, then of the queue. */
  readonly priority?: Priority
  /** Start this long from now, on the clock of the store. Not together with `runAt`. */
  readonly delay?: Duration
  /** Start not before this moment; a moment in the past means now. */
  readonly runAt?: Date | number
  readonly attempts?: number
  readonly timeout?: Duration
  /** Added to the tags of the job kind. */
  readonly tags?: readonly string[]
  /** Small values that travel with the job beside its input. */
  readonly meta?: { readonly [key: string]: Json }
  /** The key under which only one such job may wait or run; `false` turns off what the job kind says. */
  readonly unique?: string | false | ({ readonly key?: string } & UniqueTerms)
  readonly group?: string
  readonly limitKey?: string
  readonly batch?: BatchRef
  /** Runs after these have completed. */
  readonly after?: ParentRef | readonly ParentRef[]
  /** What becomes of this job when a parent does not complete. Default `fail`. */
  readonly onParentFailure?: ParentFailurePolicy
  /** A UUID of your own: enqueueing the same id again changes nothing. */
  readonly id?: string
}

export type BatchRef = string | { readonly id: BatchId; readonly connection?: string }
export type ParentRef = JobRef | { readonly job: JobRef; readonly onFailure?: ParentFailurePolicy }

/** Absent fields were not given. */
export interface CheckedOptions {
  readonly id?: JobId
  readonly priority?: number
  readonly delayMs?: number
  readonly runAtMs?: number
  readonly maxAttempts?: number
  readonly timeoutMs?: number
  readonly tags?: readonly string[]
  readonly meta?: JsonText
  readonly unique?: Exclude<EnqueueOptions['unique'], undefined>
  readonly group?: string
  readonly limitKey?: string
  readonly batch?: BatchId
  readonly dependsOn?: readonly Dependency[]
  /** Where its batch and its parents are known to live. */
  readonly connections?: readonly string[]
}

const OPTIONS = [
  'priority',
  'delay',
  'runAt',
  'attempts',
  'timeout',
  'tags',
  'meta',
  'unique',
  'group',
  'limitKey',
  'batch',
  'after',
  'onParentFailure',
  'id',
] as const satisfies readonly (keyof EnqueueOptions)[]

export const NO_OPTIONS: CheckedOptions = {}

type Encode = (meta: object) => JsonText

/** `encode` is how meta becomes text, for a caller who guards it. */
export function checkEnqueueOptions(options: EnqueueOptions, nowMs: number, encode?: Encode): CheckedOptions {
  checkKnownOptions(options, OPTIONS, 'enqueue options')
  const { priority, attempts, timeout, tags, meta, unique, group, limitKey, id } = options
  return {
    ...(id !== undefined && { id: checkJobId(id, 'id') }),
    ...(priority !== undefined && { priority: parsePriority(priority) }),
    ...checkTime(options, nowMs),
    ...(attempts !== undefined && { maxAttempts: checkInteger(attempts, 'attempts', 1, LIMITS.attemptsMax) }),
    ...(timeout !== undefined && {
      timeoutMs: parseDuration(timeout, 'timeout', { minMs: 1, maxMs: LIMITS.timeoutMaxMs }),
    }),
    ...(tags !== undefined && { tags: checkTags(tags) }),
    ...(meta !== undefined && { meta: encodeMeta(meta, encode) }),
    ...(unique !== undefined && { unique: checkUnique(unique) }),
    ...(group !== undefined && { group: checkKey(group, 'group') }),
    ...(limitKey !== undefined && { limitKey: checkKey(limitKey, 'limitKey') }),
    ...checkTies(options),
  }
}

export const META_LIMIT = { maxBytes: LIMITS.metaBytesMax, code: 'PAYLOAD_TOO_LARGE' } as const

export function encodeMeta(
  meta: unknown,
  encode: Encode = (value) => encodePayload(value, 'meta', META_LIMIT).text,
): JsonText {
  if (typeof meta !== 'object' || meta === null || Array.isArray(meta)) {
    throw invalidOption('meta', meta, 'an object of JSON values')
  }
  checkMetaKeys(meta)
  return encode(meta)
}

function checkTime({ delay, runAt }: EnqueueOptions, nowMs: number): { delayMs?: number; runAtMs?: number } {
  if (delay !== undefined && runAt !== undefined) {
    throw new MillraceError('INVALID_OPTION', 'delay and runAt exclude each other: pass one of them', {
      details: { option: 'runAt' },
    })
  }
  if (delay !== undefined) return { delayMs: parseDuration(delay, 'delay', { maxMs: LIMITS.delayMaxMs }) }
  return runAt === undefined ? {} : { runAtMs: checkMoment(runAt, 'runAt', nowMs) }
}

/** A moment in the past is fine; one that is not a moment, or beyond five years, is a mistake. */
export function checkMoment(value: unknown, what: string, nowMs: number): number {
  const ms = value instanceof Date ? value.getTime() : value
  if (typeof ms === 'number' && Number.isFinite(ms) && ms <= nowMs + LIMITS.delayMaxMs && ms >= -MOMENT_MIN_MS) {
    return Math.round(ms)
  }
  throw invalidOption(what, ms, 'a valid Date or milliseconds since 1970, at most 5 years ahead')
}

/** The range of a Date. */
const MOMENT_MIN_MS = 8.64e15

function checkUnique(unique: Exclude<EnqueueOptions['unique'], undefined>) {
  if (unique === false) return unique
  if (typeof unique === 'string') return checkKey(unique, 'unique key')
  if (typeof unique !== 'object' || unique === null) {
    throw invalidOption('unique', unique, 'a key, false or { key, mode, window, onDuplicate }')
  }
  checkKnownOptions(unique, ['key', 'mode', 'window', 'onDuplicate'], 'unique')
  if (unique.key !== undefined) checkKey(unique.key, 'unique key')
  return unique
}

const PARENT_FAILURE: readonly unknown[] = ['fail', 'cancel', 'continue'] satisfies ParentFailurePolicy[]

function checkPolicy(policy: unknown): ParentFailurePolicy {
  // Compared with every member of the union.
  if (PARENT_FAILURE.includes(policy)) return policy as ParentFailurePolicy
  throw invalidOption('onParentFailure', policy, PARENT_FAILURE.join(', '))
}

/** What ties the job to others: its batch and its parents, each named by id or by the object that stands for it. */
function checkTies(options: EnqueueOptions): Pick<CheckedOptions, 'batch' | 'dependsOn' | 'connections'> {
  const { batch, after, onParentFailure } = options
  if (onParentFailure !== undefined) checkPolicy(onParentFailure)
  if (batch === undefined && after === undefined) return NO_OPTIONS
  const connections: string[] = []
  if (typeof batch === 'object' && typeof batch?.connection === 'string') connections.push(batch.connection)
  const batchId = batch === undefined ? undefined : checkBatchId(typeof batch === 'object' ? batch?.id : batch, 'batch')
  const refs: readonly ParentRef[] = after === undefined ? [] : isList(after) ? after : [after]
  if (refs.length > LIMITS.dependenciesMax) {
    throw invalidOption('after', refs.length, `at most ${LIMITS.dependenciesMax} jobs`)
  }
  const parents = new Map<JobId, Dependency>()
  for (const ref of refs) {
    const named = typeof ref === 'object' && ref !== null && 'job' in ref ? ref : { job: ref }
    checkKnownOptions(named, ['job', 'onFailure'], 'after')
    const { id, connection } = checkJobRef(named.job, 'after')
    if (connection !== undefined) connections.push(connection)
    parents.set(id, { parent: id, onFailure: checkPolicy(named.onFailure ?? onParentFailure ?? 'fail') })
  }
  return {
    ...(batchId !== undefined && { batch: batchId }),
    ...(parents.size > 0 && { dependsOn: [...parents.values()] }),
    connections,
  }
}

// `Array.isArray` does not narrow readonly arrays out of a union.
function isList(after: ParentRef | readonly ParentRef[]): after is readonly ParentRef[] {
  return Array.isArray(after)
}
