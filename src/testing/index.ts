// The testing kit (`millrace/testing`): a Millrace in memory that does what a test tells it to, and
// assertions about the jobs in it. Guide: docs/testing.md.
export { completed, deadLetters, enqueued, expectEnqueued, expectNotEnqueued } from './assertions.ts'
export type { EnqueuedOptions, EnqueuedTerms, TestJob } from './assertions.ts'
export { createTestMillrace } from './create-test-millrace.ts'
export type { DeepPartial } from './match.ts'
export { matchers } from './matchers.ts'
export type { CompletedOptions, DeadLetterOptions, MatcherResult, MillraceMatchers } from './matchers.ts'
export { RUN_STATUSES } from './types.ts'
export type {
  AnyTestMillrace,
  DrainOptions,
  DrainReport,
  JobReport,
  LiveTestMillrace,
  PerformOptions,
  RunReport,
  RunStatus,
  TestMillrace,
  TestMode,
  TestOptions,
  WaitTarget,
} from './types.ts'
export { VirtualClock } from './virtual-clock.ts'
