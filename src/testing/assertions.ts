// Assertions about jobs for any runner: they read what the kit has recorded, at once, and throw an
// AssertionError that shows what there was instead.
import { AssertionError } from 'node:assert'
import type { InputFor, Named, ResultFor } from '../client/client-types.ts'
import type { Job } from '../client/job-view.ts'
import type { AnyJob } from '../core/definition.ts'
import { formatDuration, parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import type { JobStatus } from '../core/job.ts'
import { checkInteger, checkKnownOptions, invalidOption } from '../core/names.ts'
import { parsePriority } from '../core/priority.ts'
import type { Priority } from '../core/priority.ts'
import { describeJobs, describeKinds } from './describe.ts'
import { ledgerOf } from './ledger.ts'
import type { Entry } from './ledger.ts'
import { mismatches, shownValue } from './match.ts'
import type { DeepPartial } from './match.ts'
import type { AnyTestMillrace } from './types.ts'

/** A job as a test reads it, with the types of its kind. */
export type TestJob<Input = unknown, Result = unknown> = Omit<Job, 'payload' | 'result'> & {
  readonly payload: Input
  readonly result: Result | null
}

export interface EnqueuedTerms {
  readonly queue?: string
  /** From the enqueue to the moment it was meant to run. */
  readonly delay?: Duration
  readonly priority?: Priority
  readonly status?: JobStatus
  readonly tag?: string
}

export interface EnqueuedOptions extends EnqueuedTerms {
  /** Exactly this many. Default: at least one. */
  readonly count?: number
}

/** All jobs that were enqueued, of this kind or of any, whatever became of them, oldest first. */
export function enqueued<Known extends readonly AnyJob[]>(mill: AnyTestMillrace<Known>): readonly TestJob[]
export function enqueued<Known extends readonly AnyJob[], const Ref extends Named<Known>>(
  mill: AnyTestMillrace<Known>,
  job: Ref,
): readonly TestJob<InputFor<Known, Ref>, ResultFor<Known, Ref>>[]
export function enqueued(mill: AnyTestMillrace, job?: AnyJob | string): readonly TestJob[] {
  return entriesOf(mill, job).map((entry) => entry.job)
}

/** Those that completed. */
export function completed<Known extends readonly AnyJob[]>(mill: AnyTestMillrace<Known>): readonly TestJob[]
export function completed<Known extends readonly AnyJob[], const Ref extends Named<Known>>(
  mill: AnyTestMillrace<Known>,
  job: Ref,
): readonly TestJob<InputFor<Known, Ref>, ResultFor<Known, Ref>>[]
export function completed(mill: AnyTestMillrace, job?: AnyJob | string): readonly TestJob[] {
  return enqueued(mill, job as AnyJob).filter(({ status }) => status === 'completed')
}

/** Those that failed for good. */
export function deadLetters<Known extends readonly AnyJob[]>(mill: AnyTestMillrace<Known>): readonly TestJob[]
export function deadLetters<Known extends readonly AnyJob[], const Ref extends Named<Known>>(
  mill: AnyTestMillrace<Known>,
  job: Ref,
): readonly TestJob<InputFor<Known, Ref>, ResultFor<Known, Ref>>[]
export function deadLetters(mill: AnyTestMillrace, job?: AnyJob | string): readonly TestJob[] {
  return enqueued(mill, job as AnyJob).filter(({ status }) => status === 'failed')
}

/** At least one such job (or exactly `count`) was enqueued. Answers the jobs that match. */
export function expectEnqueued<Known extends readonly AnyJob[], const Ref extends Named<Known>>(
  mill: AnyTestMillrace<Known>,
  job: Ref,
  input?: DeepPartial<InputFor<Known, Ref>>,
  options: EnqueuedOptions = {},
): readonly TestJob<InputFor<Known, Ref>, ResultFor<Known, Ref>>[] {
  const { pass, matching, message } = checkEnqueued(mill, job, input, options)
  if (!pass) throw failure(message(), entriesOf(mill, job), input, 'expectEnqueued')
  // Matched by the name of this very kind.
  return matching.map((entry) => entry.job) as unknown as readonly TestJob<
    InputFor<Known, Ref>,
    ResultFor<Known, Ref>
  >[]
}

/** No such job was enqueued. */
export function expectNotEnqueued<Known extends readonly AnyJob[], const Ref extends Named<Known>>(
  mill: AnyTestMillrace<Known>,
  job: Ref,
  input?: DeepPartial<InputFor<Known, Ref>>,
  terms: EnqueuedTerms = {},
): void {
  const { matching, refusal } = checkEnqueued(mill, job, input, terms)
  if (matching.length > 0) throw failure(refusal(), matching, undefined, 'expectNotEnqueued')
}

export interface Check {
  readonly pass: boolean
  readonly matching: readonly Entry[]
  /** Why it does not hold. */
  readonly message: () => string
  /** Why its opposite does not hold. */
  readonly refusal: () => string
}

const OPTIONS = [
  'queue',
  'delay',
  'priority',
  'status',
  'tag',
  'count',
] as const satisfies readonly (keyof EnqueuedOptions)[]

export function checkEnqueued(mill: unknown, job: AnyJob | string, input: unknown, options: EnqueuedOptions): Check {
  checkKnownOptions(options, OPTIONS, 'expectEnqueued')
  const { count, ...terms } = options
  if (count !== undefined) checkInteger(count, 'count', 0, Number.MAX_SAFE_INTEGER)
  const ofTerms = termDifferences(terms)
  const differencesOf = (entry: Entry): readonly string[] => [...inputDifferences(entry, input), ...ofTerms(entry)]
  const matching = entriesOf(mill, job).filter((entry) => differencesOf(entry).length === 0)
  const pass = count === undefined ? matching.length > 0 : matching.length === count
  const what = `${quantity(count)} ${nameOf(job)} to be enqueued${withTerms(input, terms)}`
  return {
    pass,
    matching,
    message: () => `expected ${what}, but ${found(mill, job, differencesOf, matching.length)}`,
    refusal: () =>
      `expected no ${nameOf(job)} to be enqueued${withTerms(input, terms)}, but there was:\n${describeJobs(matching)}`,
  }
}

export function inputDifferences({ job }: Entry, input: unknown): readonly string[] {
  return input === undefined ? [] : mismatches(job.payload, input)
}

export function entriesOf(mill: unknown, job?: AnyJob | string): readonly Entry[] {
  const ledger = ledgerOf(mill)
  const entries = ledger.entries()
  if (job === undefined) return entries
  // A name that nobody registered is never enqueued: without this, a typo would pass for "not enqueued".
  const { name } = ledger.registry.resolve(job)
  return entries.filter((entry) => entry.job.name === name)
}

export function nameOf(job: AnyJob | string): string {
  const name = typeof job === 'string' ? job : (job as Partial<AnyJob> | null)?.name
  if (typeof name === 'string' && name !== '') return name
  throw invalidOption('job', job, 'a job made by defineJob(), or its name')
}

/** What there is of this kind, and what else. */
export function found(
  mill: unknown,
  job: AnyJob | string,
  differencesOf: (entry: Entry) => readonly string[],
  matched: number,
): string {
  const all = entriesOf(mill)
  const own = entriesOf(mill, job)
  const others = all.filter((entry) => !own.includes(entry) && entry.job.name !== nameOf(job)).map((entry) => entry.job)
  const rest = others.length === 0 ? '' : `\nOther jobs: ${describeKinds(others)}.`
  if (all.length === 0) return 'no job was enqueued at all.'
  if (own.length === 0) return `none of this kind was.${rest}`
  const head =
    matched > 0
      ? `${matched} of these ${own.length} matched:`
      : own.length === 1
        ? 'only this was:'
        : `only these ${own.length} were:`
  return `${head}\n${describeJobs(own, differencesOf)}${rest}`
}

export function withTerms(input: unknown, terms: EnqueuedTerms = {}): string {
  const { queue, delay, priority, status, tag } = terms
  const parts = [
    ...(input === undefined ? [] : [`with input ${shownValue(input)}`]),
    ...(queue === undefined ? [] : [`on queue ${queue}`]),
    ...(delay === undefined ? [] : [`with delay ${formatDuration(parseDuration(delay, 'delay'))}`]),
    ...(priority === undefined ? [] : [`with priority ${priority}`]),
    ...(status === undefined ? [] : [`with status ${status}`]),
    ...(tag === undefined ? [] : [`with tag ${tag}`]),
  ]
  return parts.length === 0 ? '' : ` ${parts.join(', ')}`
}

export function quantity(count: number | undefined): string {
  return count === undefined ? 'a job' : count === 1 ? 'exactly 1 job' : `exactly ${count} jobs`
}

function termDifferences({ queue, delay, priority, status, tag }: EnqueuedTerms): (entry: Entry) => readonly string[] {
  const delayMs = delay === undefined ? undefined : parseDuration(delay, 'delay')
  const number = priority === undefined ? undefined : parsePriority(priority)
  const differs = (what: string, asked: unknown, actual: unknown, show: (value: never) => string = String) =>
    asked === undefined || asked === actual
      ? []
      : [`${what}: expected ${show(asked as never)}, got ${show(actual as never)}`] // both are of the type of `show`
  return ({ job, delayMs: ownMs }) => [
    ...differs('queue', queue, job.queue),
    ...differs('delay', delayMs, ownMs, formatDuration),
    ...differs('priority', number, job.priority),
    ...differs('status', status, job.status),
    ...(tag === undefined || job.tags.includes(tag)
      ? []
      : [`tag: expected ${tag}, got ${job.tags.join(', ') || 'none'}`]),
  ]
}

/** Runners that can show a diff get the two sides; the message says it all without them. */
function failure(message: string, entries: readonly Entry[], input: unknown, operator: string): AssertionError {
  const actual = entries.map(({ job }) => job.payload)
  return new AssertionError({ message, operator, ...(input !== undefined && { actual, expected: [input] }) })
}
