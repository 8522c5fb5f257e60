// What the rules of the alerts are told: numbers of one moment, by connection. A part that is null was not answered, and
// about what was not answered nothing is decided.

export const SEVERITIES = ['info', 'warning', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]

export interface AlertFacts {
  /** Of the store, so that it is the same for whoever looks. */
  readonly nowMs: number
  readonly stores: readonly StoreFacts[]
  /** Pools of worker processes, of all supervisors. */
  readonly pools: readonly PoolFacts[] | null
}

export interface StoreFacts {
  readonly connection: string
  readonly queues: readonly QueueFacts[] | null
  /** Failures of single kinds of job; only of those that a rule names. */
  readonly kinds: readonly KindFacts[] | null
  readonly schedules: readonly ScheduleFacts[] | null
  /** Where jobs are handed out through Redis. */
  readonly relay: readonly RelayFacts[] | null
  readonly servers: readonly ServerFacts[] | null
}

export interface QueueFacts {
  readonly queue: string
  readonly paused: boolean
  /** Jobs that could start now. */
  readonly ready: number
  /** The same by lane: high, normal, low; null: this store does not say. */
  readonly lanes: readonly [number, number, number] | null
  readonly running: number
  readonly oldestReadyMs: number | null
  /** Live ones that serve it; null: they could not be asked. */
  readonly workers: number | null
  readonly deadLetters: number
  /** Jobs wait, none runs, and none was started or ended since the last look; null: this is the first look. */
  readonly isStalled: boolean | null
  /** Jobs that ended in the last ten minutes, as far back as somebody has looked. */
  readonly recent: RecentEnds
}

export interface RecentEnds {
  readonly completed: number
  readonly failed: number
}

export interface KindFacts {
  readonly kind: string
  /** Dead letters of the last ten minutes; counted up to a page. */
  readonly failed: number
  /** Of the newest of them. */
  readonly error: string | null
}

export interface ScheduleFacts {
  readonly schedule: string
  /** Since the tick that should have been fired; 0: none. */
  readonly lateMs: number
}

export interface RelayFacts {
  readonly queue: string
  readonly lagMs: number
}

export interface ServerFacts {
  /** `store`: one that does not say what it is. */
  readonly server: 'postgres' | 'redis' | 'store'
  readonly isUp: boolean
  /** Why not, without passwords. */
  readonly error: string | null
  readonly memoryUsedBytes: number | null
  /** Null or 0: there is no limit, or nobody knows it. */
  readonly memoryMaxBytes: number | null
}

export interface PoolFacts {
  readonly pool: string
  readonly host: string
  readonly isCrashLooping: boolean
}
