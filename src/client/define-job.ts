// `defineJob`: a job kind from the options a user writes. Everything is checked here, once, when the
// module that defines the job is loaded; the types of input and result are inferred, never repeated.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Classifier } from '../core/classify.ts'
import type { FailedHook, JobDefinition, RunContext, UniqueDefaults } from '../core/definition.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, checkTags, invalidOption } from '../core/names.ts'
import type { OutcomeSignal } from '../core/outcome.ts'
import { parsePriority } from '../core/priority.ts'
import type { Priority } from '../core/priority.ts'
import { checkRetryPolicy, exponential } from '../core/retry.ts'
import type { RetryPolicy } from '../core/retry.ts'
import type { OnDuplicate, UniqueMode } from '../core/unique.ts'
import { runDirectly } from './direct-run.ts'
import { checkUniqueTerms } from './unique-terms.ts'

/** `Return` is what `run` returns, promise or not; the result type follows from it. */
export interface JobOptions<Name extends string, Parsed, Input, Return> {
  readonly name: Name
  /** Default: `default`. */
  readonly queue?: string
  /** Any Standard Schema (zod, valibot, arktype ...). Without one, annotate the parameter of `run`. */
  readonly input?: StandardSchemaV1<Input, Parsed>
  readonly connection?: string
  readonly retry?: RetryPolicy
  /** Runs at most this often, the first run included. Alone: the default policy with this many attempts. */
  readonly attempts?: number
  /** Of one run. Default 5 minutes. */
  readonly timeout?: Duration
  readonly priority?: Priority
  /** `true` and `'content'`: two jobs with the same input are one. */
  readonly unique?: UniqueOption<Input>
  /** Jobs with the same group key run one at a time, in order. */
  readonly group?: (input: Input) => string
  /** The key of the per-key limits of the queue. */
  readonly limitKey?: (input: Input) => string
  readonly tags?: readonly string[]
  readonly classify?: Classifier
  readonly unknownErrors?: 'retry' | 'fail'
  readonly onFailed?: FailedHook
  readonly run: (context: RunContext<Parsed>) => Return
}

export type UniqueOption<Input> =
  | true
  | 'content'
  | {
      /** Default: `'content'`. */
      readonly by?: 'content' | ((input: Input) => string)
      readonly mode?: UniqueMode
      readonly window?: Duration
      readonly onDuplicate?: OnDuplicate
    }

/** What an awaiting producer gets: the awaited return value, without the signals. */
export type ResultOfReturn<Return> = Exclude<Awaited<Return>, OutcomeSignal>

const OPTIONS = [
  'name',
  'queue',
  'input',
  'connection',
  'retry',
  'attempts',
  'timeout',
  'priority',
  'unique',
  'group',
  'limitKey',
  'tags',
  'classify',
  'unknownErrors',
  'onFailed',
  'run',
] as const satisfies readonly (keyof JobOptions<string, unknown, unknown, unknown>)[]

export function defineJob<const Name extends string, Return, Parsed = unknown, Input = Parsed>(
  options: JobOptions<Name, Parsed, Input, Return>,
): JobDefinition<Name, Input, Parsed, ResultOfReturn<Return>> {
  checkKnownOptions(options, OPTIONS, 'defineJob()')
  checkName(options.name, 'job')
  checkFunctions(options)
  const definition: JobDefinition<Name, Input, Parsed, ResultOfReturn<Return>> = {
    name: options.name,
    queue: checkName(options.queue ?? 'default', 'queue'),
    connection: options.connection === undefined ? undefined : checkName(options.connection, 'connection'),
    schema: checkSchema(options.input),
    // The handler is kept as written; `Handler` only spells out what `Return` may be.
    handler: options.run as JobDefinition<Name, Input, Parsed, ResultOfReturn<Return>>['handler'],
    retry: retryOf(options),
    timeoutMs: parseDuration(options.timeout ?? DEFAULTS.jobTimeoutMs, 'timeout', {
      minMs: 1,
      maxMs: LIMITS.timeoutMaxMs,
    }),
    priority: options.priority === undefined ? undefined : parsePriority(options.priority),
    unique: uniqueOf(options.unique),
    group: options.group,
    limitKey: options.limitKey,
    tags: checkTags(options.tags ?? []),
    classify: options.classify,
    unknownErrors: checkUnknownErrors(options.unknownErrors),
    onFailed: options.onFailed,
    run: (input, runOptions) => runDirectly(definition, input, runOptions),
  }
  return Object.freeze(definition)
}

type FunctionOption = 'group' | 'limitKey' | 'classify' | 'onFailed'

function checkFunctions(options: { readonly run: unknown } & Readonly<Partial<Record<FunctionOption, unknown>>>): void {
  if (typeof options.run !== 'function') throw invalidOption('run', options.run, 'a function')
  for (const name of ['group', 'limitKey', 'classify', 'onFailed'] as const) {
    const value = options[name]
    if (value !== undefined && typeof value !== 'function') throw invalidOption(name, value, 'a function')
  }
}

function checkSchema(schema: unknown): StandardSchemaV1 | undefined {
  if (schema === undefined) return undefined
  const isHolder = (typeof schema === 'object' && schema !== null) || typeof schema === 'function'
  const standard: unknown = isHolder && '~standard' in schema ? schema['~standard'] : undefined
  const validates =
    typeof standard === 'object' &&
    standard !== null &&
    'validate' in standard &&
    typeof standard.validate === 'function'
  if (!validates) throw invalidOption('input', schema, 'a Standard Schema (zod, valibot, arktype ...)')
  // The shape was checked above; the rest of the interface is types only.
  return schema as StandardSchemaV1
}

function retryOf({ retry, attempts }: { readonly retry?: RetryPolicy; readonly attempts?: number }) {
  if (retry !== undefined) checkRetryPolicy(retry)
  if (attempts === undefined) return retry
  const checked = checkInteger(attempts, 'attempts', 1, LIMITS.attemptsMax)
  return retry === undefined ? exponential({ attempts: checked }) : { ...retry, attempts: checked }
}

function uniqueOf<Input>(option: UniqueOption<Input> | undefined): UniqueDefaults<Input> | undefined {
  if (option === undefined) return undefined
  if (option === true || option === 'content') return { by: 'content', ...checkUniqueTerms({}) }
  if (typeof option !== 'object')
    throw invalidOption('unique', option, "true, 'content' or { by, mode, window, onDuplicate }")
  checkKnownOptions(option, ['by', 'mode', 'window', 'onDuplicate'], 'unique')
  const by = option.by ?? 'content'
  if (by !== 'content' && typeof by !== 'function')
    throw invalidOption('unique.by', by, "'content' or a function of the input")
  return { by, ...checkUniqueTerms(option) }
}

function checkUnknownErrors(value: 'retry' | 'fail' | undefined): 'retry' | 'fail' | undefined {
  if (value === undefined || value === 'retry' || value === 'fail') return value
  throw invalidOption('unknownErrors', value, "'retry' or 'fail'")
}
