// Everything the memory backend knows, as plain data with the indexes that keep every operation's cost
// independent of how many jobs there are. The files beside this one are the operations on it.
import { MillraceError } from '../../core/errors.ts'
import { JOB_STATUSES } from '../../core/job.ts'
import type { BatchId, JobId, JobStatus, WorkerId } from '../../core/job.ts'
import type { RateState } from '../../core/rate.ts'
import type { UniqueMode } from '../../core/unique.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { BatchRecord } from '../../store/batch-store.ts'
import type { HandOver } from '../../store/hand-overs.ts'
import type { Note } from '../../store/note-store.ts'
import { defaultQueue } from '../../store/queue-defaults.ts'
import type { QueueRecord } from '../../store/queue-store.ts'
import type { ScheduleRecord } from '../../store/schedule-store.ts'
import { CONFIG_TOPIC, finishedTopic, readyTopic } from '../../store/wakeups.ts'
import type { Topic } from '../../store/wakeups.ts'
import type { WorkerCommand, WorkerRecord } from '../../store/worker-store.ts'
import { JobList } from './job-list.ts'
import { PriorityLine } from './priority-line.ts'
import { ReadyQueue } from './ready-queue.ts'
import type { JobRecord } from './record.ts'
import { Sweep } from './sweep.ts'
import { TimeHeap } from './time-heap.ts'

/** Slots in use, and who waits for one. */
export class SlotGate {
  used = 0
  readonly waiting = new PriorityLine()
}

/** The jobs of one group: one goes ahead, the others follow in order. */
export class GroupLine {
  holder: JobRecord | null = null
  readonly waiting = new JobList()
}

export class QueueState {
  config: QueueRecord
  readonly readyTopic: Topic
  readonly ready: ReadyQueue
  readonly slots = new SlotGate()
  readonly counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>
  /** Finished jobs in the order they finished, for retention. */
  readonly finished = { completed: new JobList(), failed: new JobList(), cancelled: new JobList() }

  constructor(config: QueueRecord) {
    this.config = config
    this.readyTopic = readyTopic(config.name)
    this.ready = new ReadyQueue(config.lanes)
  }
}

export interface StandingClaim {
  readonly worker: WorkerId
  readonly claimNo: number
  readonly limit: number
}

export interface WorkerState {
  record: WorkerRecord
  lastClaimNo: number
  /** The last of its claims that was answered by a hand-over. */
  lastAnswered: number
  /** Claims up to this number do not stand any more. */
  lastLookNo: number
  readonly running: Set<JobRecord>
  commands: { readonly no: number; readonly command: WorkerCommand }[]
  lastCommandNo: number
}

export interface BatchState {
  record: BatchRecord
  /** Its jobs that are not final. */
  readonly live: Set<JobRecord>
  /** How many of its jobs are still stored. */
  kept: number
}

export interface UniqueEntry {
  readonly holder: JobId
  readonly mode: UniqueMode
  /** With `for-a-time`. */
  readonly untilMs: number
}

export class World {
  readonly #clock: Clock
  #open = true
  #users = 0
  #atomMs: number | undefined
  readonly jobs = new Map<JobId, JobRecord>()
  /** By order of insert; erased jobs stay in it until the next sweep. */
  order: JobRecord[] = []
  erased = 0
  readonly queues = new Map<string, QueueState>()
  readonly scheduled = new TimeHeap()
  readonly visibility = new TimeHeap()
  readonly groups = new Map<string, GroupLine>()
  readonly keySlots = new Map<string, SlotGate>()
  readonly rates = new Map<string, RateState>()
  readonly uniques = new Map<string, UniqueEntry>()
  readonly orphans = new Set<JobRecord>()
  /** Queues whose limits were changed and not yet applied to the jobs that are there. */
  readonly relimited = new Set<string>()
  readonly batches = new Map<BatchId, BatchState>()
  readonly cancelledBatches = new Set<BatchState>()
  readonly schedules = new Map<string, ScheduleRecord>()
  readonly workers = new Map<WorkerId, WorkerState>()
  /** Dead workers that may still hold jobs. */
  readonly dead = new Set<WorkerState>()
  readonly leaders = new Map<string, { holder: string; term: number; untilMs: number }>()
  readonly notes = new Map<string, Map<string, Note>>()
  /** By queue: the last claim that found nothing there and stands. */
  readonly standing = new Map<string, StandingClaim>()
  readonly listeners = new Map<Topic, Set<(topic: Topic) => void>>()
  /** Who hears what is handed over to a worker. */
  readonly handOvers = new Map<WorkerId, (handOver: HandOver) => void>()
  /** How many of them listen for the end of a job or batch. */
  finishedListeners = 0
  readonly #rings = new Set<Topic>()
  #messages: (() => void)[] = []
  readonly sweeps = {
    uniques: new Sweep(this.uniques),
    rates: new Sweep(this.rates),
    batches: new Sweep(this.batches),
  }
  lastNo = 0
  lastSeq = 0
  lastLease = 0
  /** Versions are never used twice, so an expired note cannot be taken for its successor. */
  lastNoteVersion = 0
  /** Called after each change of a job; the simulator checks its invariants there. */
  readonly onChange: ((record: JobRecord) => void) | undefined

  constructor(clock: Clock, onChange?: (record: JobRecord) => void) {
    this.#clock = clock
    this.onChange = onChange
  }

  /** Within one operation time stands still, so all stamps of an atom are equal. */
  nowMs(): number {
    return this.#atomMs ?? this.#clock.nowMs()
  }

  /** Several clients may share one store; it closes when the last of them has stopped. */
  open(): void {
    this.#users += 1
    this.#open = true
  }

  close(): void {
    this.#users = Math.max(this.#users - 1, 0)
    if (this.#users > 0) return
    this.#open = false
    this.listeners.clear()
    this.handOvers.clear()
    this.finishedListeners = 0
  }

  /** Runs one operation as an atom, then rings whoever it concerns. */
  run<Result>(operation: () => Result): Promise<Result> {
    if (!this.#open) {
      return Promise.reject(new MillraceError('STOPPED', 'the memory backend was stopped; create a new one'))
    }
    try {
      this.#atomMs = this.#clock.nowMs()
      const result = operation()
      this.#atomMs = undefined
      if (this.#messages.length > 0) this.#tellAll()
      if (this.#rings.size > 0) this.#ringAll()
      return Promise.resolve(result)
    } catch (error) {
      this.#atomMs = undefined
      // oxlint-disable-next-line prefer-promise-reject-errors -- whatever was thrown is passed on unchanged
      return Promise.reject(error)
    }
  }

  ring(topic: Topic): void {
    if (this.listeners.has(topic)) this.#rings.add(topic)
  }

  /** A message to a worker, sent after the atom. */
  tell(worker: WorkerId, handOver: HandOver): void {
    this.#messages.push(() => this.handOvers.get(worker)?.(handOver))
  }

  /** Nothing is left there of what it was about. */
  unring(topic: Topic): void {
    this.#rings.delete(topic)
  }

  /** Somebody waits for the end of some job. Without it no topic is built: that cost 4 % of a no-op job. */
  ringFinished(id: JobId | BatchId): void {
    if (this.finishedListeners > 0) this.ring(finishedTopic(id))
  }

  queue(name: string): QueueState {
    const found = this.queues.get(name)
    if (found !== undefined) return found
    const created = new QueueState({ ...defaultQueue(name), paused: false, createdAtMs: this.nowMs(), version: 1 })
    this.queues.set(name, created)
    this.ring(CONFIG_TOPIC)
    return created
  }

  // As with hints: the write took effect, and whoever throws has lost his message.
  #tellAll(): void {
    for (const send of this.#messages.splice(0)) {
      try {
        send()
      } catch {
        continue
      }
    }
  }

  // Listeners run after the atom, never inside it. A hint may be lost, and one whose listener throws is: the
  // write took effect, so its caller must not hear of it.
  #ringAll(): void {
    const topics = [...this.#rings]
    this.#rings.clear()
    for (const topic of topics) {
      for (const listener of this.listeners.get(topic) ?? []) {
        try {
          listener(topic)
        } catch {
          continue
        }
      }
    }
  }
}

/** Groups, unique keys, limit keys are scoped to their queue. NUL cannot appear in either part. */
export function scoped(queue: string, key: string): string {
  return `${queue}\0${key}`
}
