// One job in memory: the plain state that core/apply.ts works on, plus where it is and what it holds.
// A job is in exactly one place, so one pair of links and one heap index serve all of them.
import type { JobState } from '../../core/apply.ts'
import type { EdgeName } from '../../core/edges.ts'
import type {
  AttemptRow,
  Dependency,
  JobId,
  LeaseNumber,
  LogLine,
  NewJob,
  ParentFailurePolicy,
  StoredJob,
  WaitReason,
  WorkerId,
} from '../../core/job.ts'
import type { UniqueHold } from '../../core/unique.ts'
import type { AttemptError } from '../../core/attempt-error.ts'
import type { JobList } from './job-list.ts'

export interface Orphaned {
  readonly parent: JobId
  readonly parentStatus: 'failed' | 'cancelled'
  readonly policy: 'fail' | 'cancel'
}

const NO_TAGS: readonly string[] = []
const NO_PARENTS: readonly JobId[] = []
const NO_DEPENDENCIES: readonly Dependency[] = []

export class JobRecord implements JobState {
  id: JobId
  queue: string
  name: string
  payload: string
  priority: number
  status: StoredJob['status'] = 'queued'
  attemptCount = 0
  maxAttempts: number
  crashCount = 0
  timeoutMs: number
  runAtMs: number
  enqueuedAtMs: number
  updatedAtMs: number
  startedAtMs: number | null = null
  finishedAtMs: number | null = null
  lastError: AttemptError | null = null
  result: string | null = null
  progress: string | null = null
  worker: WorkerId | null = null
  lease = 0 as LeaseNumber // 0: never claimed
  batch: StoredJob['batch']
  tags: readonly string[]
  meta: string | null
  group: string | null
  limitKey: string | null
  uniqueKey: string | null
  schedule: StoredJob['schedule']
  waitsFor: WaitReason | null = null
  cancelRequested = false
  replayOf: JobId | null
  replayedAtMs: number | null = null
  replayedBy: string | null = null
  replayedInto: JobId | null = null
  lastEdge: EdgeName = 'enqueue'
  lastEdgeLease = 0
  removeRequested = false

  /** Order of insert; the cursor of listings. */
  no: number
  erased = false
  /** Order of entry to ready, or to the line of a gate. */
  seq = 0
  list: JobList | null = null
  previous: JobRecord | null = null
  next: JobRecord | null = null
  heapIndex = -1
  heapKeyMs = 0

  readonly unique: UniqueHold | null
  /** Set when the call that inserts it knows which jobs stand for its parents. */
  dependsOn: readonly Dependency[] = NO_DEPENDENCIES
  pendingParents = 0
  orphaned: Orphaned | null = null
  children: { readonly child: JobRecord; readonly policy: ParentFailurePolicy }[] | null = null
  holdsGroup = false
  holdsKeySlot = false
  holdsQueueSlot = false
  rateReserved = false
  readyAtMs = 0
  attempts: AttemptRow[] | null = null
  logs: LogLine[] | null = null
  /** Log lines already stored for the run with this lease. */
  logLease = 0
  logCount = 0

  constructor(
    job: NewJob,
    defaults: { readonly priority: number; readonly maxAttempts: number },
    no: number,
    nowMs: number,
  ) {
    this.id = job.id
    this.queue = job.queue
    this.name = job.name
    this.payload = job.payload
    this.priority = job.priority ?? defaults.priority
    this.maxAttempts = job.maxAttempts ?? defaults.maxAttempts
    this.timeoutMs = job.timeoutMs
    this.runAtMs = Math.max(job.runAtMs ?? nowMs, nowMs + (job.delayMs ?? 0))
    this.enqueuedAtMs = nowMs
    this.updatedAtMs = nowMs
    this.batch = job.batch ?? null
    this.tags = job.tags ?? NO_TAGS
    this.meta = job.meta ?? null
    this.group = job.group ?? null
    this.limitKey = job.limitKey ?? null
    this.unique = job.unique ?? null
    this.uniqueKey = job.unique?.key ?? null
    this.schedule = job.schedule ?? null
    this.replayOf = job.replayOf ?? null
    this.no = no
  }

  get orphanOf(): JobId | null {
    return this.orphaned?.parent ?? null
  }

  get parents(): readonly JobId[] {
    return this.dependsOn.length === 0 ? NO_PARENTS : this.dependsOn.map(({ parent }) => parent)
  }
}

/** A copy for the outside: what is handed out never changes afterwards. */
export function snapshot(record: JobRecord): StoredJob {
  return {
    id: record.id,
    queue: record.queue,
    name: record.name,
    payload: record.payload,
    priority: record.priority,
    status: record.status,
    attemptCount: record.attemptCount,
    maxAttempts: record.maxAttempts,
    crashCount: record.crashCount,
    timeoutMs: record.timeoutMs,
    runAtMs: record.runAtMs,
    enqueuedAtMs: record.enqueuedAtMs,
    updatedAtMs: record.updatedAtMs,
    startedAtMs: record.startedAtMs,
    finishedAtMs: record.finishedAtMs,
    lastError: record.lastError,
    result: record.result,
    progress: record.progress,
    worker: record.worker,
    lease: record.lease,
    batch: record.batch,
    tags: record.tags,
    meta: record.meta,
    group: record.group,
    limitKey: record.limitKey,
    uniqueKey: record.uniqueKey,
    parents: record.parents,
    schedule: record.schedule,
    waitsFor: record.waitsFor,
    cancelRequested: record.cancelRequested,
    replayOf: record.replayOf,
    replayedAtMs: record.replayedAtMs,
    replayedBy: record.replayedBy,
    replayedInto: record.replayedInto,
  }
}
