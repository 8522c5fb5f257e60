// The registry of worker lives, their heartbeats, the leader lease, and commands to workers.
// A worker is one life of a process: after a restart, or after it was declared dead, it has a new id.
import type { LeaseRef, WorkerId } from '../core/job.ts'

export interface WorkerStore {
  register(worker: NewWorker): Promise<void>
  beat(request: BeatRequest): Promise<BeatReply>
  /** Ends a life in order; whatever it still holds becomes due as expired. */
  retire(id: WorkerId): Promise<void>
  list(): Promise<readonly WorkerRecord[]>
  /** Declares workers dead if their beat is still the one that was seen. Answers those declared now. */
  declareDead(seen: readonly SeenBeat[]): Promise<readonly WorkerId[]>
  /** Takes, renews or learns of the lead of a role. */
  lead(request: LeadRequest): Promise<LeadReply>
  resign(role: string, holder: string): Promise<void>
  /** Who leads a role now, for people; null: nobody. */
  leader?(role: string): Promise<SeenLeader | null>
  /** Queued per worker, delivered with its beats, at least once, in order. */
  send(target: WorkerId, command: WorkerCommand): Promise<boolean>
  /**
   * Forgets lives that ended this long ago and hold nothing, at most `limit`; answers how many. Absent where the history of
   * jobs names their workers: there they go with it.
   */
  forget?(endedForMs: number, limit: number): Promise<number>
}

export interface NewWorker {
  readonly id: WorkerId
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly concurrency: number
}

export interface WorkerRecord extends NewWorker {
  readonly state: 'alive' | 'dead'
  readonly beat: number
  readonly running: number
  readonly blockedMs: number
  readonly startedAtMs: number
  readonly lastBeatAtMs: number
}

export interface BeatRequest {
  readonly id: WorkerId
  readonly running: number
  /** Commands up to this number have been carried out. */
  readonly commandsSeen: number
  /** How long the main loop of the worker has not turned, as seen by its heartbeat thread; absent: unknown. */
  readonly blockedMs?: number
}

export interface BeatReply {
  /** False: declared dead or unknown; the worker must stop and start a new life. */
  readonly alive: boolean
  /** Runs of this worker for which cancellation was asked. */
  readonly cancels: readonly LeaseRef[]
  readonly commands: readonly { readonly no: number; readonly command: WorkerCommand }[]
  /** Runs that this worker no longer owns, as found out since its last beat. */
  readonly lost?: readonly LeaseRef[]
}

export type WorkerCommand = { readonly kind: 'quiet' } | { readonly kind: 'resume' } | { readonly kind: 'stop' }

export interface SeenBeat {
  readonly id: WorkerId
  readonly beat: number
}

export interface LeadRequest {
  readonly role: string
  readonly holder: string
  readonly ttlMs: number
}

export interface SeenLeader {
  readonly holder: string
  readonly term: number
}

export interface LeadReply {
  readonly held: boolean
  readonly holder: string
  /** Rises with every change of holder. */
  readonly term: number
}
