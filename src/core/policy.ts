// Which policy a run is judged by: what the job kind says, then its queue, then the system.
import type { Classifier } from './classify.ts'
import type { AnyJob } from './definition.ts'
import { DEFAULT_RETRY } from './retry.ts'
import type { RetryPolicy } from './retry.ts'

export interface SystemPolicy {
  /** Asked for every error that the classifier of the kind did not know. */
  readonly classifiers: readonly Classifier[]
  readonly unknownErrors: 'retry' | 'fail'
}

export interface RunPolicy extends SystemPolicy {
  readonly retry: RetryPolicy
}

export const DEFAULT_POLICY: RunPolicy = { retry: DEFAULT_RETRY, classifiers: [], unknownErrors: 'retry' }

export function runPolicy(
  kind: Pick<AnyJob, 'retry' | 'classify' | 'unknownErrors'> | undefined,
  queueRetry: RetryPolicy | null,
  { classifiers, unknownErrors }: SystemPolicy,
): RunPolicy {
  return {
    retry: kind?.retry ?? queueRetry ?? DEFAULT_RETRY,
    classifiers: kind?.classify === undefined ? classifiers : [kind.classify, ...classifiers],
    unknownErrors: kind?.unknownErrors ?? unknownErrors,
  }
}
