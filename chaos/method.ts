// How a run is played, in words and numbers. They are written down with its results, so that a page made from them says what
// was played then and not what would be played today.
import { TAKES_MAX_MS } from './checks/idle.ts'
import { PEER_NOTES } from './peer-notes.ts'
import type { PeerNote } from './peer-notes.ts'
import { SCENARIOS } from './phases/catalogue.ts'
import { scaledDown } from './scaled.ts'
import { DRAIN_MAX_MS } from './scenario.ts'
import type { Scenario, Times } from './scenario.ts'

export interface Method {
  /** Of load before a fault, and after it. */
  readonly phaseSeconds: number
  /** Where a scenario does not ask for the default. */
  readonly ttlSeconds: number
  readonly text: readonly string[]
  /** What is smaller than it may be in production. */
  readonly scaled: readonly string[]
  /** All there were, in order. */
  readonly scenarios: readonly Described[]
  readonly peerNotes: Readonly<Record<string, PeerNote>>
}

export interface Described extends Pick<Scenario, 'name' | 'says' | 'peers' | 'usually'> {
  /** Nothing stops: there is nothing to recover from. */
  readonly goesOn: boolean
  /** When the offered rate was there again was looked at, also of peers. */
  readonly hasSteady: boolean
}

export function methodOf(times: Times): Method {
  const { phaseMs, ttlMs } = times
  return {
    phaseSeconds: phaseMs / 1000,
    ttlSeconds: ttlMs / 1000,
    text: TEXT,
    scaled: scaledDown(times),
    scenarios: SCENARIOS.map(({ name, says, peers, usually, goesOn, promise }) => ({
      name,
      says,
      peers,
      ...(usually !== undefined && { usually }),
      goesOn: goesOn === true,
      hasSteady: promise?.steady !== undefined,
    })),
    peerNotes: PEER_NOTES,
  }
}

const TEXT = [
  'A producer process offers jobs at a steady rate by the clock, each by a call of its own, and writes every id to a file before it asks and once it is told. Two worker processes write a line when a ' +
    'handler starts and when it ends. Every process reaches its stores through a proxy of its own, which can be slow, silent, or break. After a phase of load the fault strikes, the load goes on for ' +
    'another phase, the producer stops, and what is left is drained. Then the books are compared with what the system says of each job. Beside the load batches are made, and a schedule ' +
    'fires every second. Where PostgreSQL fails over, its disk is full or a hundred workers come back, the cell has a server of its own. PostgreSQL has `fsync` and `synchronous_commit` on, ' +
    'Redis its log with `everysec`. Peers are played by the same program; their workers and producers are started again when they end by themselves. What only waits for a time-out of its own ' +
    `${DRAIN_MAX_MS.short / 1000} s after the load (${DRAIN_MAX_MS.default / 1000} s at default settings) is *stuck*, not lost.`,
  'Also counted, and part of the verdict: jobs that nobody asked for, runs of one job that overlap while the first still owned it, jobs of a group out of order, batches that are gone, ' +
    'never finished, or whose counters or callbacks are not those of a recount, ticks that fired twice or not at all. Of ours also: a job that starts elsewhere while the lease of a ' +
    `worker that fell silent must still hold, a worker that begins jobs although it was cut off for longer than its ttl, and one of the workers that takes nothing for ${TAKES_MAX_MS / 1000} s after the fault.`,
]
