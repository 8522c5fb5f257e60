// What a job system must offer to be measured. Each peer is one file in bench/systems that does its job
// in the way its own documentation recommends; the scenarios are the same for all.

export interface System {
  open(backend: string): Promise<OpenSystem>
}

/** About 200 bytes as JSON. `seq` counts up, so that a scenario can tell jobs apart. */
export interface Payload {
  readonly seq: number
  readonly to: string
  readonly body: string
}

export interface OpenSystem {
  enqueue(payload: Payload): Promise<void>
  /** One round trip if the system can. */
  enqueueMany(payloads: readonly Payload[]): Promise<void>
  /** Starts one worker; resolves when it has started. */
  work(options: WorkOptions): Promise<RunningWorker>
  close(): Promise<void>
}

export interface WorkOptions {
  readonly concurrency: number
  /** Called by the handler as its first act; absent: the handler does nothing at all. */
  readonly onStart?: (seq: number) => void
  /** Called when the completion of a job is known to be stored. */
  readonly onCompleted?: () => void
}

export interface RunningWorker {
  stop(): Promise<void>
}

const BODY = 'x'.repeat(140)

export function payload(seq: number): Payload {
  return { seq, to: 'someone@example.com', body: BODY }
}

/** The most that one bulk call takes. */
const BULK_MAX = 10_000

/** Fills the queue before a measurement. */
export async function fill(system: OpenSystem, jobs: number): Promise<void> {
  for (let first = 0; first < jobs; first += BULK_MAX) {
    await system.enqueueMany(payloads(first, Math.min(BULK_MAX, jobs - first)))
  }
}

export function payloads(first: number, count: number): readonly Payload[] {
  return Array.from({ length: count }, (_, index) => payload(first + index))
}
