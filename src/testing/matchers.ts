// The assertions as matchers for `expect.extend(matchers)` in vitest and jest.
import type { AnyJob, InputOf, ResultOf } from '../core/definition.ts'
import { checkInteger, checkKnownOptions } from '../core/names.ts'
import { checkEnqueued, entriesOf, found, inputDifferences, nameOf, quantity, withTerms } from './assertions.ts'
import type { EnqueuedOptions } from './assertions.ts'
import { describeJobs } from './describe.ts'
import type { Entry } from './ledger.ts'
import { mismatches, shownValue } from './match.ts'
import type { DeepPartial } from './match.ts'

export interface CompletedOptions {
  /** Exactly this many. Default: at least one. */
  readonly count?: number
  /** Part of the result. */
  readonly result?: unknown
}

export interface DeadLetterOptions {
  /** Exactly this many. Default: at least one. */
  readonly count?: number
  /** Part of the name, the message or the code of its last error. */
  readonly error?: string | RegExp
}

export interface MatcherResult {
  readonly pass: boolean
  readonly message: () => string
}

type PartOfInput<Job> = Job extends AnyJob ? DeepPartial<InputOf<Job>> : unknown

/** For `declare module 'vitest' { interface Matchers<T> extends MillraceMatchers<T> {} }`, and the like of jest. */
export interface MillraceMatchers<Returned = unknown> {
  toHaveEnqueued<Job extends AnyJob | string>(job: Job, input?: PartOfInput<Job>, options?: EnqueuedOptions): Returned
  toHaveCompleted<Job extends AnyJob | string>(
    job: Job,
    input?: PartOfInput<Job>,
    options?: CompletedOptions & (Job extends AnyJob ? { readonly result?: DeepPartial<ResultOf<Job>> } : unknown),
  ): Returned
  toHaveDeadLetter<Job extends AnyJob | string>(
    job: Job,
    input?: PartOfInput<Job>,
    options?: DeadLetterOptions,
  ): Returned
}

export const matchers = {
  toHaveEnqueued(mill: unknown, job: AnyJob | string, input?: unknown, options: EnqueuedOptions = {}): MatcherResult {
    const { pass, message, refusal } = checkEnqueued(mill, job, input, options)
    return { pass, message: pass ? refusal : message }
  },

  toHaveCompleted(mill: unknown, job: AnyJob | string, input?: unknown, options: CompletedOptions = {}): MatcherResult {
    checkKnownOptions(options, ['count', 'result'], 'toHaveCompleted')
    const { count, result } = options
    const fits = ({ job: { status, result: actual } }: Entry): boolean =>
      status === 'completed' && (result === undefined || mismatches(actual, result).length === 0)
    const more = result === undefined ? '' : ` and result ${shownValue(result)}`
    return ending({ mill, job, input, count, fits, what: `have completed${withTerms(input)}${more}` })
  },

  toHaveDeadLetter(
    mill: unknown,
    job: AnyJob | string,
    input?: unknown,
    options: DeadLetterOptions = {},
  ): MatcherResult {
    checkKnownOptions(options, ['count', 'error'], 'toHaveDeadLetter')
    const { count, error } = options
    const fits = ({ job: { status, lastError } }: Entry): boolean => {
      if (status !== 'failed' || error === undefined) return status === 'failed'
      const texts = [lastError?.name, lastError?.message, lastError?.code]
      return texts.some((text = '') => (typeof error === 'string' ? text.includes(error) : error.test(text)))
    }
    const more = error === undefined ? '' : ` with error ${String(error)}`
    return ending({ mill, job, input, count, fits, what: `be a dead letter${withTerms(input)}${more}` })
  },
}

interface EndingCheck {
  readonly mill: unknown
  readonly job: AnyJob | string
  readonly input: unknown
  readonly count: number | undefined
  readonly fits: (entry: Entry) => boolean
  readonly what: string
}

function ending({ mill, job, input, count, fits, what }: EndingCheck): MatcherResult {
  if (count !== undefined) checkInteger(count, 'count', 0, Number.MAX_SAFE_INTEGER)
  const differencesOf = (entry: Entry): readonly string[] => inputDifferences(entry, input)
  const matching = entriesOf(mill, job).filter((entry) => differencesOf(entry).length === 0 && fits(entry))
  const pass = count === undefined ? matching.length > 0 : matching.length === count
  const message = (): string =>
    pass
      ? `expected no ${nameOf(job)} to ${what}, but there was:\n${describeJobs(matching)}`
      : `expected ${quantity(count)} ${nameOf(job)} to ${what}, but ${found(mill, job, differencesOf, matching.length)}`
  return { pass, message }
}
