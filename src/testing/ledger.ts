// What the kit knows of the jobs in a test: the memory worlds of all connections, which statuses each job
// has been in, and when it was first meant to run. Assertions and `waitFor` read from here, without waiting.
import { backendOver } from '../backends/memory/backend.ts'
import { snapshot } from '../backends/memory/record.ts'
import type { JobRecord } from '../backends/memory/record.ts'
import { World } from '../backends/memory/world.ts'
import { viewJob } from '../client/job-view.ts'
import type { Job } from '../client/job-view.ts'
import type { Registry } from '../client/registry.ts'
import type { JobId, JobStatus } from '../core/job.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Backend } from '../store/ports.ts'

export interface Entry {
  readonly job: Job
  /** Every status it has been in, the present one included. */
  readonly seen: ReadonlySet<JobStatus>
  /** From the moment it was enqueued to the moment it was first meant to run. */
  readonly delayMs: number
}

interface Trace {
  readonly connection: string
  readonly seen: Set<JobStatus>
  delayMs: number
}

export class Ledger {
  readonly #worlds = new Map<string, World>()
  /** In the order in which the jobs were enqueued. */
  readonly #traces = new Map<JobId, Trace>()
  readonly #listeners = new Set<(entry: Entry) => void>()

  /** The job kinds of the test: an assertion about any other is a typo. */
  readonly registry: Registry

  constructor(connections: Iterable<string>, clock: Clock, registry: Registry) {
    this.registry = registry
    for (const name of connections) this.#worlds.set(name, new World(clock, (record) => this.#changed(name, record)))
  }

  get worlds(): ReadonlyMap<string, World> {
    return this.#worlds
  }

  backends(): Readonly<Record<string, Backend>> {
    return Object.fromEntries([...this.#worlds].map(([name, world]) => [name, backendOver(world)]))
  }

  /** In the order in which they were enqueued; deleted ones are gone. */
  entries(): readonly Entry[] {
    const entries: Entry[] = []
    for (const [id, trace] of this.#traces) {
      const record = this.#worlds.get(trace.connection)?.jobs.get(id)
      if (record !== undefined) entries.push(entryOf(record, trace))
    }
    return entries
  }

  statusOf(id: JobId): JobStatus | undefined {
    return this.#worlds.get(this.#traces.get(id)?.connection ?? '')?.jobs.get(id)?.status
  }

  /** Called with each change, as it was at that moment. Answers the way to stop. */
  onChange(listener: (entry: Entry) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #changed(connection: string, record: JobRecord): void {
    if (record.erased) return
    let trace = this.#traces.get(record.id)
    if (trace === undefined) this.#traces.set(record.id, (trace = { connection, seen: new Set(), delayMs: 0 }))
    // Until its first run the plan may still change: a debounced job moves.
    if (record.lease === 0 && record.waitsFor !== 'rate')
      trace.delayMs = Math.max(0, record.runAtMs - record.enqueuedAtMs)
    trace.seen.add(record.status)
    if (this.#listeners.size === 0) return
    const entry = entryOf(record, { ...trace, seen: new Set(trace.seen) })
    for (const listener of this.#listeners) listener(entry)
  }
}

function entryOf(record: JobRecord, { connection, seen, delayMs }: Trace): Entry {
  return { job: viewJob(snapshot(record), connection), seen, delayMs }
}

const ledgers = new WeakMap<object, Ledger>()

export function keepLedger<Mill extends object>(mill: Mill, ledger: Ledger): Mill {
  ledgers.set(mill, ledger)
  return mill
}

export function ledgerOf(mill: unknown): Ledger {
  const ledger = typeof mill === 'object' && mill !== null ? ledgers.get(mill) : undefined
  if (ledger !== undefined) return ledger
  throw new TypeError('this assertion needs a Millrace made by createTestMillrace(), which keeps a record of its jobs')
}
