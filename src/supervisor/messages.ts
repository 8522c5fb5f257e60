// Everything that a supervisor and its children say to each other, over the channel of `fork`.
import type { ProcessReading } from '../runtime/process-meter.ts'

/** How often a child tells how it is; missing it for long makes it unhealthy. */
export const STATS_MS = 1_000

export type ToChild =
  | { readonly kind: 'begin'; readonly orders: ChildOrders }
  | { readonly kind: 'quiet' }
  | { readonly kind: 'resume' }
  /** Take no new jobs, and end when the running ones have; after the deadline they are aborted and given back. Null: none. */
  | { readonly kind: 'drain'; readonly deadlineMs: number | null }
  /** Give back what runs, now, and end. */
  | { readonly kind: 'stop' }

export type FromChild =
  /** Loaded, and waiting for its orders. */
  | { readonly kind: 'hello' }
  | {
      readonly kind: 'ready'
      readonly workerIds: readonly string[]
      /** What it works on: its code may be newer than that of its supervisor. */
      readonly queues?: readonly string[]
    }
  | { readonly kind: 'stats'; readonly stats: ChildStats }
  | { readonly kind: 'draining'; readonly reason: string }
  | { readonly kind: 'done'; readonly drained: boolean }

export interface ChildStats extends ProcessReading {
  readonly workerIds: readonly string[]
  /** Runs that ended, and those of them that ended in an error. */
  readonly processed: number
  readonly failed: number
  readonly running: number
  /** The same as `processed`, by queue. */
  readonly ended?: Readonly<Record<string, number>>
  /** Counters and histograms of the process, for whoever adds them up; opaque here. */
  readonly metrics?: unknown
}

export interface ChildOrders {
  readonly id: string
  readonly pool: string
  /** Null: of all jobs. */
  readonly queues: readonly string[] | null
  readonly concurrency: number | null
  readonly timeoutMs: number | null
  readonly attempts: number | null
  readonly isQuiet: boolean
  /** For running jobs when the supervisor is gone, or somebody sends SIGTERM to the child. */
  readonly drainMs: number
  readonly source: ChildSource
}

/** Where the child finds its jobs and its store. */
export interface ChildSource {
  readonly cwd: string
  readonly flags: {
    readonly config?: string
    readonly postgres?: string
    readonly redis?: string
    readonly schema?: string
  }
  readonly json: boolean
  readonly verbose: boolean
  /** The supervisor runs maintenance, so that its leader is not the one who is killed. */
  readonly maintenance: boolean
}

/** A handler may use the channel of its process too: what is not ours is nobody's, and must not harm the supervisor. */
export function isFromChild(message: unknown): message is FromChild {
  const { kind, workerIds, queues, stats, reason } = fieldsOf(message)
  switch (kind) {
    case 'hello':
    case 'done':
      return true
    case 'ready':
      return isTexts(workerIds) && (queues === undefined || isTexts(queues))
    case 'stats':
      return isStats(fieldsOf(stats))
    case 'draining':
      return typeof reason === 'string'
    default:
      return false
  }
}

const NUMBERS = ['rssBytes', 'cpuPercent', 'loopLagMs', 'processed', 'failed', 'running'] as const

function isStats(stats: Readonly<Record<string, unknown>>): boolean {
  const { workerIds, ended } = stats
  const areCounts = ended === undefined || Object.values(fieldsOf(ended)).every((count) => Number.isFinite(count))
  return isTexts(workerIds) && areCounts && NUMBERS.every((name) => Number.isFinite(stats[name]))
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {} // any object has them
}
