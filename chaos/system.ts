// What every system under chaos implements, ours and the peers, so that all of them are played by the same scenarios.

/** The servers of one cell, by their URLs. */
export interface Place {
  readonly backend: Backend
  readonly postgres?: string
  readonly redis?: string
}

export const BACKENDS = ['postgres', 'redis', 'hybrid'] as const

export type Backend = (typeof BACKENDS)[number]

export interface ChaosJob {
  /** A UUIDv7 that the producer made. */
  readonly id: string
  readonly longMs: number
  readonly group?: string
  /** Of its first run, in place of `longMs`. */
  readonly firstMs?: number
  /** The deadline of a run. Undefined: the default of the system. */
  readonly timeoutMs?: number
  /** Not before this moment. Undefined: at once. */
  readonly dueMs?: number
}

export interface WorkerSettings {
  readonly concurrency: number
  /** So many workers in the process, each with that concurrency. Default 1. */
  readonly workers?: number
  /** Undefined: the default of the system. */
  readonly ttlMs?: number
}

export interface ChaosSystem {
  readonly name: string
  /** First the one that most of its users have. */
  readonly backends: readonly Backend[]
  /** What a dead worker held comes back only after hours: nobody waits for that. */
  readonly holdsForHours?: true
  /** How it is set up, stated beside its results. */
  readonly settings: string
  /** Schema and queue, once per run. */
  prepare(place: Place): Promise<void>
  openProducer(place: Place): Promise<OpenProducer>
  /** `run` is the handler: it writes the books, waits `longMs` and answers its result; it may throw. */
  openWorker(place: Place, settings: WorkerSettings, run: (job: ChaosJob) => Promise<string>): Promise<OpenWorker>
  /** Looked at from outside, after the load. A job that is only waiting for a time-out of the system is `running`. */
  inspect(place: Place): Promise<Census>
  /** What the system itself has written down of every job. Absent: it keeps no such record. */
  record?(place: Place): Promise<readonly Recorded[]>
  /** What a producer does beside the load, with features that the others do not have, and writes into its ledger. */
  openSideLoad?(place: Place, ledger: string): Promise<{ close(): Promise<void> }>
  sideFacts?(place: Place): Promise<SideFacts>
  /** Beside the load, in one call. */
  enqueueBatch?(place: Place, batch: NewBatch): Promise<void>
}

export interface NewBatch {
  readonly name: string
  readonly size: number
  /** Of each of its jobs. */
  readonly longMs: number
}

export interface OpenProducer {
  enqueue(job: ChaosJob): Promise<void>
  /** At most a thousand in one call. Absent: they are enqueued one by one. */
  enqueueMany?(jobs: readonly ChaosJob[]): Promise<void>
  close(): Promise<void>
}

export interface OpenWorker {
  close(): Promise<void>
}

/** Jobs by state. `completed` is null where finished jobs are removed. */
export interface Census {
  readonly waiting: number
  readonly running: number
  readonly failed: number
  readonly completed: number | null
}

/** What will still happen while somebody looks. */
export function awaitedOf({ holdsForHours }: Pick<ChaosSystem, 'holdsForHours'>, { waiting, running }: Census): number {
  return waiting + (holdsForHours ? 0 : running)
}

/** One job in the books of the system. */
export interface Recorded {
  readonly id: string
  readonly status: string
  /** Those that count, also the last one. */
  readonly attempts: number
  /** Rows of its audit trail, and those that say `success`. */
  readonly rows: number
  readonly successes: number
  /** What the handler answered whose run counts. */
  readonly result: string | null
}

export interface SideFacts {
  readonly batches: readonly BatchFacts[]
  /** One entry per job that the schedule made. */
  readonly ticksMs: readonly number[]
  readonly tickEveryMs: number
}

export interface BatchFacts {
  readonly name: string
  readonly counted: BatchCount
  /** From its jobs, one by one. */
  readonly recounted: BatchCount
  readonly isSealed: boolean
  readonly isFinished: boolean
  /** Jobs that its end has made. */
  readonly callbacks: number
}

export interface BatchCount {
  readonly total: number
  readonly completed: number
}
