// The public face of Millrace. Anything not exported here or from a subpath is internal.
export { memory } from './backends/memory/backend.ts'
export type { MemoryOptions } from './backends/memory/backend.ts'
export { defineJob } from './client/define-job.ts'
export type { Batch, Client } from './client/client-types.ts'
export type { EnqueueOptions } from './client/enqueue-options.ts'
export type { JobHandle } from './client/handle.ts'
export type { Job } from './client/job-view.ts'
export type { EnqueueCall, EnqueueMiddleware, EnqueueReply } from './client/middleware.ts'
export type { AttemptError } from './core/attempt-error.ts'
export type { BatchProgress } from './core/batch.ts'
export { ERROR_CLASSES } from './core/classify.ts'
export type { Classifier, ErrorClass } from './core/classify.ts'
export type {
  AnyJob,
  FailedInfo,
  InputOf,
  JobDefinition,
  ResultOf,
  RunContext,
  RunMiddleware,
  RunningJob,
} from './core/definition.ts'
export type { Duration } from './core/duration.ts'
export { ERROR_CATALOGUE, MillraceError, isMillraceError } from './core/errors.ts'
export type { ErrorCode } from './core/errors.ts'
export { JOB_STATUSES } from './core/job.ts'
export type { AttemptRow, BatchId, JobId, JobStatus, LogLine, WorkerId } from './core/job.ts'
export type { Json } from './core/json.ts'
export { cancel, fail, release, retryAfter, snooze } from './core/outcome.ts'
export type { Priority } from './core/priority.ts'
export { customRetry, exponential, fixed, linear } from './core/retry.ts'
export type { RetryPolicy } from './core/retry.ts'
export { createMillrace } from './millrace.ts'
export type { Millrace, MillraceOptions } from './millrace.ts'
export type { Events } from './runtime/events.ts'
export { jsonLogger, silentLogger } from './runtime/logger.ts'
export type { Logger } from './runtime/logger.ts'
export type { Worker } from './worker/worker.ts'
export type { WorkOptions } from './works.ts'
