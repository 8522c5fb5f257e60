// What the hybrid keeps in Redis for people, beside the protocol: counters of tokens, the live status of single jobs, and a
// look at a queue. No rule reads any of it; every call is best effort, and nothing waits for it but a person.
import type { RedisNode } from '../redis/link.ts'
import type { EpochTag, TokenField } from './ports.ts'

/** What became of tokens, since somebody began to count. */
export const TOKEN_COUNTS = ['taken', 'refused', 'torn', 'returned', 'requeued'] as const
/**
 * `taken` by workers; calls `refused` by the gate (another epoch or server) or because a part was `torn`; tokens that a
 * worker had taken and `returned` unstarted; jobs that reconcile `requeued` since their token was lost or of an older epoch.
 */
export type TokenCount = (typeof TOKEN_COUNTS)[number]

export interface QueueLook {
  /** '' where there is none. */
  readonly epoch: EpochTag
  /** Tokens that wait, per lane; `revoked` of them are dropped by the next take. */
  readonly depths: readonly [number, number, number]
  readonly backlog: readonly [boolean, boolean, boolean]
  readonly revoked: number
  /** Taken, and not known to be settled. */
  readonly inFlight: number
  readonly counts: Readonly<Record<TokenCount, number>>
}

/** A change of the hash of one job. */
export interface ShownJob {
  readonly id: string
  /** A later one wins. */
  readonly lease: number
  readonly keepMs: number
  readonly fields: Readonly<Record<string, string>>
  /** In milliseconds from now on the clock of the server. */
  readonly times: Readonly<Record<string, number>>
  readonly gone: readonly string[]
}

export interface RaceEye {
  look(queue: string): Promise<QueueLook>
  /** Parallel to the fields: whether Redis has a token of this name. */
  has(queue: string, fields: readonly TokenField[]): Promise<readonly boolean[]>
  count(queue: string, more: Readonly<Partial<Record<TokenCount, number>>>): Promise<void>
  show(queue: string, jobs: readonly ShownJob[]): Promise<void>
  onMasters<Value>(ask: (node: RedisNode) => Promise<Value>): Promise<readonly Value[]>
}
