// What `millrace doctor` asks: checks as data. The command brings those that any backend can answer; a backend
// adds its own (schema version, orphans, settings of its server) through an optional `diagnose()`.

/** `warn`: it works, and will not stay so. `fail`: something does not work. */
export type FindingLevel = 'ok' | 'warn' | 'fail'

export interface Finding {
  readonly level: FindingLevel
  /** What was found, with its numbers. */
  readonly message: string
  /** What to do now; a command or a statement where there is one. */
  readonly fix?: string
}

export interface Check {
  /** Short and stable: scripts look for it. A check of a backend takes the place of a general one of its name. */
  readonly name: string
  /** May throw, which counts as `fail`; whoever calls it bounds its time. */
  readonly run: () => Promise<Finding>
}

/** A backend that can examine itself. */
export interface Diagnosable {
  diagnose(): Promise<readonly Check[]>
}

export function isDiagnosable<Value extends object>(backend: Value): backend is Value & Diagnosable {
  return 'diagnose' in backend && typeof backend.diagnose === 'function'
}

/** One queue of a store that hands out jobs by another way than the one it keeps them in. */
export interface DispatchState {
  readonly queue: string
  /** `token`: through Redis. `ledger`: from PostgreSQL alone. */
  readonly mode: 'token' | 'ledger'
  readonly epoch: number
  /** Tokens that wait, and those that workers hold or have ended since they asked last; null: Redis cannot be asked. */
  readonly waiting: number | null
  readonly inFlight: number | null
  /** Ready jobs that have no token yet. */
  readonly backlog: number
  /** How long the oldest of them has waited although there was room for its token. */
  readonly relayLagMs: number | null
}

export interface Dispatching {
  dispatching(): Promise<readonly DispatchState[]>
}

export function isDispatching<Value extends object>(backend: Value): backend is Value & Dispatching {
  return 'dispatching' in backend && typeof backend.dispatching === 'function'
}

/** One server behind a backend, as it answers now: what health, metrics and alerts look at. */
export interface ServerState {
  readonly kind: 'postgres' | 'redis'
  /** `host:port`, for people. */
  readonly name: string
  /** The round trip of a small question; null: there was no answer. */
  readonly pingMs: number | null
  /** Why there was none. */
  readonly error?: string
  /** Connections of all its clients; absent: it does not tell. */
  readonly clients?: number
  readonly memory?: MemoryUse
}

export interface MemoryUse {
  readonly usedBytes: number
  /** Null: it has no limit. */
  readonly maxBytes: number | null
}

/** A backend with servers behind it. Never rejects, and ends within a bound: one that does not answer is an answer. */
export interface Served {
  servers(): Promise<readonly ServerState[]>
}

export function isServed<Value extends object>(backend: Value): backend is Value & Served {
  return 'servers' in backend && typeof backend.servers === 'function'
}
