// The public face of Millrace. Anything not exported here or from a subpath is internal.
export type { AlertOptions, SilenceOptions } from './alerts/options.ts'
export type { AnySinkOptions } from './alerts/sink-options.ts'
export { verifyWebhook } from './alerts/sinks/signature.ts'
export type { VerifyOptions } from './alerts/sinks/signature.ts'
export type { SentNotice } from './alerts/sinks/sink.ts'
export { memory } from './backends/memory/backend.ts'
export type { MemoryOptions } from './backends/memory/backend.ts'
export { hybrid } from './backends/hybrid/backend.ts'
export type { ClaimMode, HybridOptions } from './backends/hybrid/backend.ts'
export { postgres } from './backends/postgres/backend.ts'
export type { PostgresOptions } from './backends/postgres/backend.ts'
export { redis } from './backends/redis/backend.ts'
export type { RedisOptions } from './backends/redis/backend.ts'
export type { RedisServer, RedisTls } from './backends/redis/link.ts'
export { defineJob } from './client/define-job.ts'
export type { JobOptions, UniqueOption } from './client/define-job.ts'
export type { BatchOptions } from './client/batch-options.ts'
export type { BatchInfo } from './client/batches.ts'
export type { Batch, Batches, Client, EnqueueVerbs, TypedBatchOptions, TypedSchedules } from './client/client-types.ts'
export type { ConsumedJob, Consumer, ConsumerOptions, NackOptions, SettleAnswer } from './client/consumer.ts'
export type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetters,
  PruneOptions,
  ReplayCount,
  ReplayManyOptions,
  ReplayOptions,
} from './client/dead-letters.ts'
export type { CancelAnswer, RemoveAnswer } from './client/ending.ts'
export type { BatchRef, EnqueueOptions, ParentRef } from './client/enqueue-options.ts'
export type { Flow, FlowShape } from './client/flows.ts'
export type { JobHandle } from './client/handle.ts'
export type { JobRef } from './client/ids.ts'
export type { JobListFilter, PageOptions } from './client/job-filter.ts'
export type { Attempt, Job, JobLogLine } from './client/job-view.ts'
export type { CancelOptions, JobPage, Jobs } from './client/jobs.ts'
export type { EnqueueCall, EnqueueMiddleware, EnqueueReply } from './client/middleware.ts'
export type { DeclaredQueue, QueueOptions } from './client/queue-options.ts'
export type { Queue, Queues } from './client/queues.ts'
export type { ScheduleOptions } from './client/schedule-options.ts'
export type { Schedule, Schedules } from './client/schedules.ts'
export type { UniqueTerms } from './client/unique-terms.ts'
export type { WaitOptions } from './client/wait-options.ts'
export type { AlertFacts, Severity } from './core/alert-facts.ts'
export type { CustomFinding, CustomRule, RuleOptions, RulesOptions } from './core/alert-options.ts'
export type { AttemptError } from './core/attempt-error.ts'
export type { BatchProgress } from './core/batch.ts'
export { ERROR_CLASSES } from './core/classify.ts'
export type { Classifier, ErrorClass } from './core/classify.ts'
export type {
  AnyJob,
  ContextEnqueue,
  ContextEnqueueOptions,
  DirectRunOptions,
  FailedHook,
  FailedInfo,
  Handler,
  IdempotentOptions,
  InputOf,
  JobDefinition,
  JobLog,
  KindMetadata,
  ParentResult,
  ResultOf,
  RunContext,
  RunMiddleware,
  RunningJob,
} from './core/definition.ts'
export type { Recurrence } from './core/cron.ts'
export type { Duration } from './core/duration.ts'
export { ERROR_CATALOGUE, MillraceError, isMillraceError } from './core/errors.ts'
export type { ErrorCode, MillraceErrorOptions } from './core/errors.ts'
export { JOB_STATUSES } from './core/job.ts'
export type { AttemptRow, BatchId, JobId, JobStatus, LogLine, WorkerId } from './core/job.ts'
export type { Json } from './core/json.ts'
export { cancel, fail, release, retryAfter, snooze } from './core/outcome.ts'
export type { OutcomeSignal } from './core/outcome.ts'
export type { SecretGuard } from './core/payload.ts'
export type { LaneBounds, Priority, PriorityWord } from './core/priority.ts'
export type { RateLimit, RateLimitOptions } from './core/rate.ts'
export { customRetry, exponential, fixed, linear } from './core/retry.ts'
export type {
  CustomRetry,
  ExponentialOptions,
  ExponentialRetry,
  FixedOptions,
  FixedRetry,
  LinearOptions,
  LinearRetry,
  RetryFunction,
  RetryPolicy,
  RetryPolicyRecord,
} from './core/retry.ts'
export type { MisfirePolicy, OverlapPolicy } from './core/schedule.ts'
export type { OnDuplicate, UniqueMode } from './core/unique.ts'
export type { RetentionOptions } from './maintenance/retention-options.ts'
export type { ScaleSignal } from './core/scale-signal.ts'
export { createOpsServer } from './http/ops-server.ts'
export type { OpsServerOptions, OpsSources } from './http/ops-server.ts'
export type { HttpOptions } from './http/http-options.ts'
export type { HttpReply, HttpRequest, Route } from './http/route.ts'
export type { HttpService } from './http/server.ts'
export type { HealthReport, Problem, QueueHealth, SeenServer } from './observability/health.ts'
export type { Health } from './observability/health-reader.ts'
export type { Recent } from './observability/recent.ts'
export { createMillrace } from './millrace.ts'
export { createSupervisor } from './supervisor/create-supervisor.ts'
export type {
  RunningSupervisor,
  SupervisorContext,
  SupervisorOptions,
  SupervisorService,
  SupervisorTarget,
} from './supervisor/create-supervisor.ts'
export type { SupervisorEventName, SupervisorEvents, SupervisorListener } from './supervisor/events.ts'
export type { ChildState, ChildStatus, PoolStatus, SupervisorRecord } from './supervisor/fleet.ts'
export type { SuperviseConfig } from './supervisor/options.ts'
export type { PoolConfig, RestartOptions } from './supervisor/pool-options.ts'
export { createAutoscaler } from './supervisor/autoscaler.ts'
export type { Autoscaler, AutoscalerParts } from './supervisor/autoscaler.ts'
export type { AutoscaleOptions } from './supervisor/autoscale-options.ts'
export { readScalingHistory } from './supervisor/scaling-history.ts'
export { forceResult, forceScale } from './supervisor/scaling-requests.ts'
export type { ForceOptions, ForceRequest, ForceResult, ForceTarget } from './supervisor/scaling-requests.ts'
export { switchScaling } from './supervisor/scaling-switch.ts'
export type { ScaleEvent } from './supervisor/plan-notes.ts'
export type { ScalingOptions } from './core/scaling-limits.ts'
export type { DecideScale, ScaleContext, ScaleDecision, ScaleMetrics } from './core/scaling.ts'
export type { Service } from './runtime/service.ts'
export type { Millrace, MillraceOptions } from './millrace.ts'
export type { Buckets } from './core/buckets.ts'
export type { JobCount, JobSeries, JobTime } from './core/job-series.ts'
export type { CallSeries } from './observability/call-meter.ts'
export type { EndMessage, EnqueueMessage, StartMessage } from './observability/channels.ts'
export type { Gauges, QueueGauges, StoreGauges } from './observability/gauges.ts'
export type { HistoryDepth } from './observability/depth-history.ts'
export type { History, HistoryOptions, HistoryPoint, HistorySeries, HistoryTimes } from './observability/history.ts'
export type { MetricsOptions, TelemetryOptions } from './observability/metrics-options.ts'
export type { MillMetrics } from './observability/observability.ts'
export { prometheusText } from './observability/prometheus.ts'
export { mergeSnapshots } from './observability/registry.ts'
export type { MetricsSnapshot } from './observability/registry.ts'
export type { EventName, Events, Listener } from './runtime/events.ts'
export { jsonLogger, silentLogger } from './runtime/logger.ts'
export type { Logger } from './runtime/logger.ts'
export type { QueueCounts } from './store/job-query.ts'
export type { Backend, Capabilities } from './store/ports.ts'
export type { QueueLimits, QueueRetention } from './store/queue-store.ts'
export type { BackupTaskOptions } from './tasks/backup.ts'
export { TASK_QUEUE } from './tasks/built-in.ts'
export type { TaskInfo, TaskRunOptions, Tasks } from './tasks/desk.ts'
export type { LogsTaskOptions } from './tasks/logs.ts'
export type { NotificationsTaskOptions } from './tasks/notifications.ts'
export type { TasksOptions, TaskTiming } from './tasks/options.ts'
export type { StaleTaskOptions } from './tasks/stale.ts'
export type { TaskName, TaskResult } from './tasks/task.ts'
export type { Worker } from './worker/worker.ts'
export type { WorkOptions } from './works.ts'
export type { StoreOptions } from './stores.ts'
export { defineConfig } from './cli/config.ts'
export type { MillraceConfig } from './cli/config.ts'
