// What a job system must offer to be measured. Each peer is one file in bench/systems that does its job
// in the way its own documentation recommends; the scenarios are the same for all.
import { randomBytes } from 'node:crypto'

export const OURS = 'millrace'
/** Without what lives in memory, which is compared with nobody. */
export const OURS_ON_SERVERS: readonly string[] = ['postgres', 'redis', 'redis-no-aof', 'hybrid', 'hybrid-no-aof'].map(
  (backend) => `${OURS}:${backend}`,
)

export interface System {
  /** Makes what it needs in the store; several processes may open the same place one after the other. */
  open(place: Place): Promise<OpenSystem>
}

export interface Place {
  readonly backend: string
  /** Of the database in PostgreSQL, if the backend uses it. */
  readonly url?: string
  readonly redisUrl?: string
  readonly aim: Aim
  /** Nothing is set for the benchmark. */
  readonly isUnset?: true
}

/** What the scenario is about, for systems that are set up differently for each. */
export type Aim = 'enqueue' | 'throughput' | 'handlers' | 'latency'

/** About 200 bytes as JSON, unless the scenario asks for more. `seq` counts up, so that a scenario can tell jobs apart. */
export interface Payload {
  readonly seq: number
  readonly to: string
  readonly body: string
}

export interface OpenSystem {
  enqueue(payload: Payload): Promise<void>
  /** One round trip if the system can. */
  enqueueMany(payloads: readonly Payload[]): Promise<void>
  /** Asks the store how many jobs wait or run: a job counts until its completion is committed. */
  unfinished(): Promise<number>
  /** Where jobs wait in two places, those that were brought to the fast one; it holds `most`. */
  readonly dispatch?: { readonly most: number; readonly count: () => Promise<number> }
  /** Starts one worker; resolves when it has started. */
  work(options: WorkOptions): Promise<RunningWorker>
  close(): Promise<void>
}

export interface WorkOptions {
  readonly concurrency: number
  /** The handler calls it as its first act, waits for what it answers if that takes time, and does nothing else. */
  readonly onStart: (seq: number) => void | Promise<void>
}

export interface RunningWorker {
  stop(): Promise<void>
}

/** Connections of every peer and process, as far as the system lets one choose. */
export const POOL_SIZE = 20

const BODY_BYTES = 140

/** Makes payloads with a body of so many bytes. */
export function payloadMaker(bodyBytes = BODY_BYTES): (seq: number) => Payload {
  // Random letters: what repeats itself is compressed by PostgreSQL once it is large.
  const body = randomBytes(bodyBytes).toString('base64').slice(0, bodyBytes)
  return (seq) => ({ seq, to: 'someone@example.com', body })
}
