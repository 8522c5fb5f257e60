// Every default and every bound, once. The numbers are those of the specification; nothing else in
// the code repeats them.

export const DEFAULTS = {
  attempts: 3,
  retryBaseMs: 1_000,
  retryFactor: 2,
  retryMaxMs: 5 * 60_000,
  retryJitter: 0.3,
  retryFixedMs: 5_000,
  resourceDelayMs: 30 * 60_000,
  jobTimeoutMs: 5 * 60_000,
  abortGraceMs: 1_000,
  priority: 100,
  laneHighMax: 50,
  laneNormalMax: 150,
  lowerLaneShare: 16,
  concurrency: 10,
  prefetchRatio: 0.25,
  prefetchAgeMaxMs: 1_000,
  pollMinMs: 10,
  pollMaxMs: 1_000,
  /** A hand-over that is not heard of by then is taken for lost. */
  handOverLateMs: 100,
  heartbeatMs: 2_500,
  workerTtlMs: 10_000,
  trustMarginMs: 2_000,
  maintenancePeriodMs: 500,
  leaderTtlMs: 10_000,
  dedupWindowMs: 60 * 60_000,
  idempotencyWaitMs: 30_000,
  idempotencyLifeMs: 24 * 60 * 60_000,
  pageSize: 50,
  retentionFinishedMs: 30 * 24 * 60 * 60_000,
  retentionFailedMs: 365 * 24 * 60 * 60_000,
  retentionArchiveMs: 183 * 24 * 60 * 60_000,
  /** Redis keeps everything in memory. */
  retentionFinishedRedisMs: 60 * 60_000,
  retentionFailedRedisMs: 7 * 24 * 60 * 60_000,
  retentionLogsMs: 90 * 24 * 60 * 60_000,
  retentionPartitionMs: 7 * 24 * 60 * 60_000,
  deadLetterPruneMs: 30 * 24 * 60 * 60_000,
  drainDeadlineMs: 30_000,
  storeTimeoutMs: 30_000,
  crashesBeforeAlone: 2,
  crashesBeforePoison: 3,
  /** Pairs of queue and kind that are counted apart. */
  metricSeries: 300,
  gaugesCacheMs: 5_000,
  gaugesTimeoutMs: 2_000,
  rollupMinutesKeptMs: 48 * 60 * 60_000,
  rollupHoursKeptMs: 90 * 24 * 60 * 60_000,
  /** Of a supervisor, over all pools. */
  processes: 20,
  poolProcessesMin: 1,
  poolProcessesMax: 15,
  poolMemoryMb: 512,
  supervisorDrainMs: 60_000,
  restartMinMs: 1_000,
  restartMaxMs: 60_000,
  /** A process that lived this long was no failed start. */
  stableAfterMs: 10_000,
  crashLoopAfter: 5,
  healthCheckMs: 5_000,
  /** A blocked loop is no dead process: its heartbeats have a thread of their own. */
  unresponsiveMs: 60_000,
  startTimeoutMs: 60_000,
  planStaleMs: 60_000,
  commandLifeMs: 5 * 60_000,
  /** Beyond these something is wrong: health, `doctor` and alerts mean the same by it. */
  alertDepth: 10_000,
  alertOldestReadyMs: 60 * 60_000,
  alertDeadLetters: 100,
  alertRedisMemoryShare: 0.8,
  alertRelayLagMs: 30_000,
  /** Between two looks of `status --watch` and `top`. */
  watchMs: 2_000,
  /** Between two looks of the alerts, and of the watch for a store that is down. */
  alertEveryMs: 15_000,
  alertStoreEveryMs: 5_000,
  alertStalledForMs: 60_000,
  alertDeadLetterGrowth: 50,
  /** Over which growth, failure ratio and failures of a kind are counted. */
  alertWindowMs: 10 * 60_000,
  alertFailureRatio: 0.5,
  alertFailureSample: 20,
  alertScheduleLateMs: 5 * 60_000,
  /** An alert is over when its number is at most this share of its limit: none comes and goes at the edge. */
  alertRecoverShare: 0.8,
  alertLogMs: 30 * 24 * 60 * 60_000,
  noticeAttempts: 3,
  noticeRetryMs: 300_000,
  noticeTimeoutMs: 10_000,
  /** Built-in tasks: whoever runs one holds its lead this long, renewed all the time. */
  taskLeadMs: 30_000,
  /** After this long a task that works in passes leaves the rest to its next run. */
  taskMaxMs: 10 * 60_000,
  backupMaxMs: 2 * 60 * 60_000,
  backupKeepMs: 7 * 24 * 60 * 60_000,
  logFileKeepMs: 14 * 24 * 60 * 60_000,
  deadWorkerKeptMs: 60 * 60_000,
  notificationRetries: 3,
  notificationRetryMs: 300_000,
  notificationAgeMs: 24 * 60 * 60_000,
} as const

export const LIMITS = {
  priorityMax: 32_767,
  attemptsMax: 1_000,
  claimBatchMax: 1_000,
  /** Jobs that an insert hands over to a worker whose claim stands: payloads travel in one message. */
  handOverMax: 8,
  applyBatchMax: 1_000,
  payloadBytesMax: 256 * 1024,
  payloadDepthMax: 64,
  resultBytesMax: 64 * 1024,
  progressBytesMax: 4 * 1024,
  logLineBytesMax: 4 * 1024,
  logLinesMax: 1_000,
  /** Kept per job over all its runs; the oldest go first. */
  jobLogLinesMax: 10_000,
  auditRowsMax: 1_000,
  errorBytesMax: 16 * 1024,
  bulkJobsMax: 10_000,
  dependenciesMax: 1_000,
  delayMaxMs: 5 * 366 * 24 * 60 * 60_000,
  timeoutMaxMs: 7 * 24 * 60 * 60_000,
  keyCharsMax: 200,
  tagsMax: 20,
  nameCharsMax: 100,
  pageSizeMax: 200,
  cronCharsMax: 128,
  concurrencyMax: 10_000,
  maintenanceBatchMax: 1_000,
  catchUpMax: 1_000,
  noteBytesMax: 64 * 1024,
  metaBytesMax: 4 * 1024,
  taskPassesMax: 100_000,
  taskWarningsMax: 20,
  taskWordsMax: 500,
  /** Files of a log directory that one run looks at. */
  logFilesMax: 100_000,
  /** Of what a program of PostgreSQL says. */
  toolOutputBytesMax: 16 * 1024,
  /** Keys that one step of SCAN is asked to look at. */
  scanCount: 500,
  notificationsMax: 1_000,
  /** How long a server has to answer before it counts as down. */
  pingMaxMs: 2_000,
  /** Of one connection; those beyond are not watched. */
  alertQueuesMax: 1_000,
  alertsMax: 1_000,
  /** Of one kind, in one look. */
  alertKindFailuresMax: 100,
  alertTextCharsMax: 500,
  silencesMax: 200,
  silenceMaxMs: 366 * 24 * 60 * 60_000,
  sinksMax: 20,
  sinkReplyBytesMax: 16 * 1024,
  /** All questions of one health report together. */
  healthMaxMs: 3_000,
  watchMinMs: 250,
  topFailuresMax: 10,
  topWorkersMax: 500,
  healthQueuesMax: 500,
  healthProblemsMax: 100,
  /** Ready jobs are counted up to here for scalers. */
  scaleReadyMax: 100_000,
  scaleQueuesMax: 200,
  scaleQueuesPerRequestMax: 20,
  httpTokenCharsMin: 16,
  httpHeaderBytesMax: 8 * 1024,
  httpHeadersMaxMs: 5_000,
  httpRequestMaxMs: 10_000,
  httpHandlerMaxMs: 5_000,
  httpIdleMaxMs: 5_000,
  httpConnectionsMax: 100,
  httpRequestsPerConnectionMax: 1_000,
  /** What is under way when the port closes may take this long. */
  httpStopMaxMs: 2_000,
  /** So long an answer about the store is given again. */
  httpRememberMs: 1_000,
  metricSeriesMax: 10_000,
  /** Pairs of queue and kind in one note of history. */
  rollupSeriesMax: 100,
  /** Queues in one note of depths. */
  depthQueuesMax: 500,
  historyPointsMax: 3_000,
  /** Of the wait before a process is started again, and of the life after which it counts as started. */
  restartMaxMs: 60 * 60_000,
  /** Their states must fit into one note. */
  processesMax: 100,
  poolsMax: 50,
  memoryMbMax: 1_048_576,
  commandLifeMaxMs: 60 * 60_000,
} as const

/** The autoscaler, where a queue has nothing of its own. */
export const SCALING = {
  min: 1,
  max: 15,
  upSize: 100,
  upArrivalRatio: 1.5,
  upUtilisation: 0.85,
  upWaitMs: 30_000,
  upStep: 2,
  downSize: 10,
  downUtilisation: 0.3,
  downWaitMs: 10_000,
  downProcessingRatio: 2,
  downCalmSize: 5,
  downStep: 1,
  /** Of the workers that a step down would leave. */
  busyMax: 0.85,
  cooldownMs: 300_000,
  /** Jobs per second below which the two rates are not compared: one job in an idle queue is no trend. */
  arrivalMinPerS: 0.5,
  /** Holding a longest wait: ups follow each other this fast. */
  sloUpCooldownMs: 15_000,
  /** Holding a longest wait: a step down must still be right with this much more load. */
  sloSlack: 0.2,
  sampleMs: 5_000,
  /** A store that takes long to count is asked less often, and at least this often. */
  sampleMaxMs: 20_000,
  smoothingMs: 15_000,
  /** Older metrics are none. */
  staleMs: 30_000,
  /** How fast a request to force a size is seen. */
  requestMs: 1_000,
  /** A plan is written again this often, so that whoever follows it knows that somebody is there. */
  planRefreshMs: 20_000,
  /** A plan that nobody looked after for this long is forgotten: the pool starts at its minimum. */
  planLifeMs: 15 * 60_000,
  historyMs: 30 * 24 * 60 * 60_000,
  historyEventsMax: 5_000,
  requestLifeMs: 10 * 60_000,
  requestsMax: 100,
  switchesMax: 1_000,
  poolsMax: 200,
  hostsMax: 1_000,
  workersMax: 10_000,
  reasonCharsMax: 500,
} as const
