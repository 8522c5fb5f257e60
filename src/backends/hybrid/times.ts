// Every time and bound of the hybrid; the numbers are those of the specification.

export interface HybridTimes {
  /** A call to Redis without an answer for this long has an unknown outcome. */
  readonly raceMs: number
  readonly ledgerMs: number
  /** A statement may take effect for this long after the connection of its caller is gone: statement_timeout of the ledger. */
  readonly lateMs: number
  /** In flight for this long: marked in PostgreSQL; looked for this often. */
  readonly markAfterMs: number
  readonly markEveryMs: number
  /** Errors of Redis for this long open the breaker. */
  readonly breakerMs: number
  /** Redis has to answer for this long before tokens flow again; doubled when it happens often. */
  readonly returnMs: number
  readonly returnMaxMs: number
  /** An epoch without a birth for one to two of these is flipped again. */
  readonly unbornMs: number
  readonly watchMs: number
  readonly relayMaxMs: number
  readonly reconcileMs: number
  readonly reaperMs: number
  /** Tokens per lane. */
  readonly window: number
  /** Tokens of all lanes of all queues: window.ts. */
  readonly windowTotal: number
}

export const HYBRID_TIMES: HybridTimes = {
  raceMs: 1_000,
  ledgerMs: 30_000,
  lateMs: 5_000,
  markAfterMs: 250,
  markEveryMs: 100,
  breakerMs: 250,
  returnMs: 1_000,
  returnMaxMs: 30_000,
  unbornMs: 100,
  watchMs: 50,
  relayMaxMs: 1_000,
  reconcileMs: 1_000,
  reaperMs: 500,
  window: 10_000,
  windowTotal: 100_000,
}
