// The works of one process: its workers, and the maintenance that runs while there are any.
import { hostname } from 'node:os'
import type { ClientInternals } from './client/client.ts'
import type { AnyJob, FailedHook, RunMiddleware } from './core/definition.ts'
import { parseDuration } from './core/duration.ts'
import type { Duration } from './core/duration.ts'
import { MillraceError } from './core/errors.ts'
import { DEFAULTS, LIMITS } from './core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from './core/names.ts'
import type { SystemPolicy } from './core/policy.ts'
import { createMaintenance, timesFor } from './maintenance/maintenance.ts'
import { checkRetention } from './maintenance/retention-options.ts'
import type { RetentionOptions } from './maintenance/retention-options.ts'
import type { Probe } from './runtime/probe.ts'
import type { Runtime } from './runtime/runtime.ts'
import type { Service } from './runtime/service.ts'
import type { Tracing } from './runtime/tracing.ts'
import { tellFailed } from './runtime/verdicts.ts'
import type { Backend } from './store/ports.ts'
import type { RunBounds } from './worker/job-run.ts'
import { startWorker } from './worker/worker.ts'
import type { EngineParts, Worker } from './worker/worker.ts'

export interface WorkOptions {
  /** Default: the queues of all registered jobs. */
  readonly queues?: readonly string[]
  /** Jobs at once in this process. Default 10. */
  readonly concurrency?: number
  /** No run here takes longer than this, whatever the timeout of its job is; handlers may still extend. */
  readonly timeout?: Duration
  /** A job that fails here for the nth time has failed for good, whatever its own `attempts` are. Default: those alone. */
  readonly attempts?: number
  /** Between two heartbeats. Default 2.5 s. */
  readonly heartbeat?: Duration
  /** Without a heartbeat for this long a worker is dead. Default 10 s; the same in all processes. */
  readonly ttl?: Duration
}

const WORK_OPTIONS = [
  'queues',
  'concurrency',
  'timeout',
  'attempts',
  'heartbeat',
  'ttl',
] as const satisfies readonly (keyof WorkOptions)[]

export interface WorksParts {
  readonly runtime: Runtime
  readonly internals: ClientInternals<readonly AnyJob[]>
  readonly policy: SystemPolicy
  readonly middleware: readonly RunMiddleware[]
  readonly onFailed: FailedHook | undefined
  readonly maintenance: boolean
  readonly retention: RetentionOptions | undefined
  readonly storeTimeoutMs: number
  readonly probe: Probe
  readonly tracing: Tracing | undefined
  /** Services that want to know who leads the maintenance of a store. */
  readonly beside: (backend: Backend, isLeading: () => boolean) => readonly Service[]
}

export class Works {
  readonly #parts: WorksParts
  readonly #workers = new Set<Worker>()
  readonly #beginning = new Set<Promise<unknown>>()
  readonly #maintenance = new Map<string, Service>()
  /** Maintenance was asked for by itself: it does not end with the last worker. */
  #maintains = false
  #stopped = false

  constructor(parts: WorksParts) {
    this.#parts = parts
  }

  async work(options: WorkOptions): Promise<Worker> {
    this.#refuseIfStopped()
    const beginning = this.#begin(options)
    this.#beginning.add(beginning)
    try {
      return await beginning
    } finally {
      this.#beginning.delete(beginning)
      await this.#stopIdleMaintenance()
    }
  }

  async maintain({ ttl }: Pick<WorkOptions, 'ttl'>): Promise<void> {
    this.#refuseIfStopped()
    const { ttlMs } = timesOf({ ...(ttl !== undefined && { ttl }) })
    this.#maintains = true
    const { internals } = this.#parts
    await internals.ensureQueues()
    this.#refuseIfStopped()
    for (const connection of internals.connections.names) await this.#maintain(connection, ttlMs)
  }

  async stop(deadline: number): Promise<void> {
    this.#stopped = true
    // A worker that is just being started sees the flag and ends by itself; its error is its caller's.
    await Promise.allSettled(this.#beginning)
    const workers = [...this.#workers]
    await Promise.all(workers.map((worker) => worker.stop({ deadline })))
    await this.#stopMaintenance()
  }

  async #begin(options: WorkOptions): Promise<Worker> {
    checkKnownOptions(options, WORK_OPTIONS, 'work')
    const concurrency = checkInteger(
      options.concurrency ?? DEFAULTS.concurrency,
      'concurrency',
      1,
      LIMITS.concurrencyMax,
    )
    const times = timesOf(options)
    const timeoutMaxMs =
      options.timeout === undefined
        ? Infinity
        : parseDuration(options.timeout, 'timeout', { minMs: 1, maxMs: LIMITS.timeoutMaxMs })
    const attemptsMax =
      options.attempts === undefined ? Infinity : checkInteger(options.attempts, 'attempts', 1, LIMITS.attemptsMax)
    const byConnection = this.#queuesByConnection(options.queues)
    await this.#parts.internals.ensureQueues()
    this.#refuseIfStopped()
    for (const connection of byConnection.keys()) await this.#maintain(connection, times.ttlMs)
    const engines = [...byConnection].map(([connection, queues]) => ({
      ...this.#engine(connection, queues, times),
      timeoutMaxMs,
      attemptsMax,
    }))
    const worker = await startWorker(engines, concurrency, (stopped) => this.#workerStopped(stopped))
    this.#workers.add(worker)
    if (this.#stopped) await worker.stop({ deadline: 0 })
    this.#refuseIfStopped()
    return worker
  }

  #refuseIfStopped(): void {
    if (this.#stopped) throw new MillraceError('STOPPED', 'this Millrace was stopped; create a new one to work')
  }

  async #workerStopped(worker: Worker): Promise<void> {
    this.#workers.delete(worker)
    await this.#stopIdleMaintenance()
  }

  async #stopIdleMaintenance(): Promise<void> {
    if (this.#workers.size === 0 && this.#beginning.size === 0 && !this.#maintains) await this.#stopMaintenance()
  }

  async #stopMaintenance(): Promise<void> {
    const services = [...this.#maintenance.values()]
    this.#maintenance.clear()
    await Promise.all(services.map((service) => service.stop()))
  }

  #queuesByConnection(asked: readonly string[] | undefined): ReadonlyMap<string, readonly string[]> {
    const { registry, connections } = this.#parts.internals
    if (asked !== undefined && (!Array.isArray(asked) || asked.length === 0)) {
      throw invalidOption('queues', asked, 'an array of at least one queue, or nothing to work on all of them')
    }
    const queues = new Set(asked?.map((queue) => checkName(queue, 'queue')) ?? registry.all().map(({ queue }) => queue))
    if (queues.size === 0) throw invalidOption('jobs', [], 'at least one registered job to work on')
    const byConnection = new Map<string, string[]>()
    for (const queue of queues) {
      const connection = connections.ofQueue(queue)
      byConnection.set(connection, [...(byConnection.get(connection) ?? []), queue])
    }
    return byConnection
  }

  #engine(
    connection: string,
    queues: readonly string[],
    times: EngineParts['times'],
  ): Omit<EngineParts, keyof RunBounds> {
    const { internals, runtime, policy, middleware, onFailed, storeTimeoutMs, probe, tracing } = this.#parts
    const { registry, connections, hub } = internals
    return {
      ...policy,
      backend: connections.backend(connection),
      connection,
      runtime,
      events: hub,
      queues,
      definition: (name) => registry.find(name),
      services: internals.runServices(connection),
      middleware,
      onFailed,
      probe,
      tracing,
      host: { name: hostname(), pid: process.pid },
      times,
      flushTimeoutMs: storeTimeoutMs,
    }
  }

  async #maintain(connection: string, workerTtlMs: number): Promise<void> {
    const { internals, runtime, maintenance, retention, onFailed, probe, beside } = this.#parts
    if (!maintenance || this.#maintenance.has(connection)) return
    const { registry, connections, hub } = internals
    const backend = connections.backend(connection)
    const service = createMaintenance({
      ...timesFor(workerTtlMs),
      retention: checkRetention(retention, backend.capabilities.retention),
      runtime,
      backend,
      connection,
      events: hub,
      probe,
      beside: (isLeading) => beside(backend, isLeading),
      retryOf: (name) => registry.find(name)?.retry,
      onFailed: (failed) => tellFailed(failed, [registry.find(failed.name)?.onFailed, onFailed], runtime.logger),
    })
    this.#maintenance.set(connection, service)
    await service.start()
  }
}

function timesOf({ heartbeat, ttl }: WorkOptions): EngineParts['times'] {
  const heartbeatMs = parseDuration(heartbeat ?? DEFAULTS.heartbeatMs, 'heartbeat', { minMs: 10 })
  const ttlMs = parseDuration(ttl ?? DEFAULTS.workerTtlMs, 'ttl', { minMs: 20 })
  if (ttlMs < heartbeatMs * 2) throw invalidOption('ttl', ttlMs, `at least twice the heartbeat (${heartbeatMs} ms)`)
  // The default margin is a fifth of the default ttl; a shorter ttl keeps the proportion.
  const marginMs = (ttlMs * DEFAULTS.trustMarginMs) / DEFAULTS.workerTtlMs
  // Aborted half a margin before the ttl, a handler must be given up before others may start its job.
  return { heartbeatMs, ttlMs, marginMs, abortGraceMs: Math.min(DEFAULTS.abortGraceMs, marginMs / 2) }
}
