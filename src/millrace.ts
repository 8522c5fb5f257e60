// The facade: client, workers and maintenance over the chosen backends. The composition root; every part
// gets its dependencies here and nowhere else.
import { hostname } from 'node:os'
import { createClient } from './client/client.ts'
import type { ClientInternals, ClientOptions } from './client/client.ts'
import type { Client } from './client/client-types.ts'
import type { EnqueueMiddleware } from './client/middleware.ts'
import type { Classifier } from './core/classify.ts'
import type { AnyJob, FailedHook, FailedInfo, RunMiddleware } from './core/definition.ts'
import { parseDuration } from './core/duration.ts'
import type { Duration } from './core/duration.ts'
import { MillraceError } from './core/errors.ts'
import { DEFAULTS, LIMITS } from './core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from './core/names.ts'
import { MAINTENANCE_TIMES, createMaintenance } from './maintenance/maintenance.ts'
import { createEventHub } from './runtime/events.ts'
import type { Logger } from './runtime/logger.ts'
import { createRuntime } from './runtime/runtime.ts'
import type { Runtime } from './runtime/runtime.ts'
import type { Service } from './runtime/service.ts'
import type { Backend } from './store/ports.ts'
import { startWorker } from './worker/worker.ts'
import type { EngineParts, Worker } from './worker/worker.ts'

export interface MillraceOptions<Known extends readonly AnyJob[]> {
  readonly jobs: Known
  /** Where jobs are kept: `memory()` for tests and experiments. */
  readonly backend?: Backend
  /** Several stores by name; one of them is `default`. Instead of `backend`. */
  readonly connections?: Readonly<Record<string, Backend>>
  readonly queues?: ClientOptions<Known>['queues']
  readonly secrets?: ClientOptions<Known>['secrets']
  /** Around every enqueue and around every run, the first one outermost. */
  readonly use?: { readonly enqueue?: readonly EnqueueMiddleware[]; readonly run?: readonly RunMiddleware[] }
  /** Asked for every error that the classifier of the job kind did not know. */
  readonly classify?: Classifier
  /** What becomes of an error nobody knows. Default: it is retried. */
  readonly unknownErrors?: 'retry' | 'fail'
  /** After any job became a dead letter. */
  readonly onFailed?: FailedHook
  readonly logger?: Logger
  /** Promoter, rescuer, scheduler and retention in processes that work. Default true. */
  readonly maintenance?: boolean
  /** How long a store call may take before its outcome counts as unknown. Default 30 s. */
  readonly storeTimeout?: Duration
  /** Time, randomness and ids, for tests. */
  readonly runtime?: Partial<Runtime>
}

export interface WorkOptions {
  /** Default: the queues of all registered jobs. */
  readonly queues?: readonly string[]
  /** Jobs at once in this process. Default 10. */
  readonly concurrency?: number
  /** Between two heartbeats. Default 2.5 s. */
  readonly heartbeat?: Duration
  /** Without a heartbeat for this long a worker is dead. Default 10 s; the same in all processes. */
  readonly ttl?: Duration
}

export interface Millrace<Known extends readonly AnyJob[] = readonly AnyJob[]> extends Client<Known>, AsyncDisposable {
  /** Runs jobs in this process until `stop()`. */
  work(options?: WorkOptions): Promise<Worker>
  /** Stops workers, maintenance and connections. Idempotent. */
  stop(options?: { readonly deadline?: Duration }): Promise<void>
}

const OPTIONS = [
  'jobs',
  'backend',
  'connections',
  'queues',
  'secrets',
  'use',
  'classify',
  'unknownErrors',
  'onFailed',
  'logger',
  'maintenance',
  'storeTimeout',
  'runtime',
] as const satisfies readonly (keyof MillraceOptions<readonly AnyJob[]>)[]

const WORK_OPTIONS = ['queues', 'concurrency', 'heartbeat', 'ttl'] as const satisfies readonly (keyof WorkOptions)[]

export async function createMillrace<const Known extends readonly AnyJob[]>(
  options: MillraceOptions<Known>,
): Promise<Millrace<Known>> {
  checkKnownOptions(options, OPTIONS, 'createMillrace')
  const connections = connectionsOf(options)
  const runtime = createRuntime({ ...options.runtime, ...(options.logger && { logger: options.logger }) })
  const storeTimeoutMs = parseDuration(options.storeTimeout ?? DEFAULTS.storeTimeoutMs, 'storeTimeout', { minMs: 1 })
  const hub = createEventHub(runtime.logger)
  const { internals, ...client } = createClient<Known>({
    jobs: options.jobs,
    connections,
    runtime,
    hub,
    storeTimeoutMs,
    middleware: options.use?.enqueue ?? [],
    ...(options.queues && { queues: options.queues }),
    ...(options.secrets && { secrets: options.secrets }),
  })
  const backends = new Set(Object.values(connections))
  await Promise.all([...backends].map((backend) => backend.start()))
  const house = new House(options, runtime, internals, storeTimeoutMs)
  let stopping: Promise<void> | undefined

  async function stopAll(deadline: Duration | undefined): Promise<void> {
    await house.stop(deadline)
    await Promise.all([...backends].map((backend) => backend.stop()))
  }

  return {
    ...client,
    work: (work = {}) => house.work(work),
    stop: ({ deadline } = {}) => (stopping ??= stopAll(deadline)),
    [Symbol.asyncDispose]: () => (stopping ??= stopAll(undefined)),
  }
}

function connectionsOf(options: MillraceOptions<readonly AnyJob[]>): Readonly<Record<string, Backend>> {
  const { backend, connections } = options
  if (backend !== undefined && connections !== undefined) {
    throw new MillraceError('INVALID_OPTION', 'createMillrace takes either `backend` or `connections`, not both')
  }
  if (backend !== undefined) return { default: backend }
  if (connections !== undefined) return connections
  throw new MillraceError(
    'INVALID_OPTION',
    'createMillrace needs a place to keep jobs: pass `backend: memory()`, or `connections` with several by name',
  )
}

/** The workers of this process and the maintenance that runs while there are any. */
class House<Known extends readonly AnyJob[]> {
  readonly #options: MillraceOptions<Known>
  readonly #runtime: Runtime
  readonly #internals: ClientInternals<Known>
  readonly #storeTimeoutMs: number
  readonly #workers = new Set<Worker>()
  readonly #maintenance = new Map<string, Service>()
  #stopped = false

  constructor(
    options: MillraceOptions<Known>,
    runtime: Runtime,
    internals: ClientInternals<Known>,
    storeTimeoutMs: number,
  ) {
    this.#options = options
    this.#runtime = runtime
    this.#internals = internals
    this.#storeTimeoutMs = storeTimeoutMs
  }

  async work(work: WorkOptions): Promise<Worker> {
    if (this.#stopped) throw new MillraceError('STOPPED', 'this Millrace was stopped; create a new one to work')
    checkKnownOptions(work, WORK_OPTIONS, 'work')
    const concurrency = checkInteger(work.concurrency ?? DEFAULTS.concurrency, 'concurrency', 1, LIMITS.concurrencyMax)
    const heartbeatMs = parseDuration(work.heartbeat ?? DEFAULTS.heartbeatMs, 'heartbeat', { minMs: 10 })
    const ttlMs = parseDuration(work.ttl ?? DEFAULTS.workerTtlMs, 'ttl', { minMs: 20 })
    if (ttlMs < heartbeatMs * 2) throw invalidOption('ttl', ttlMs, `at least twice the heartbeat (${heartbeatMs} ms)`)
    // The default margin is a fifth of the default ttl; a shorter ttl keeps the proportion.
    const marginMs = (ttlMs * DEFAULTS.trustMarginMs) / DEFAULTS.workerTtlMs
    const times = { heartbeatMs, ttlMs, marginMs, abortGraceMs: DEFAULTS.abortGraceMs }
    await this.#internals.ensureQueues()
    const byConnection = this.#queuesByConnection(work.queues)
    for (const connection of byConnection.keys()) await this.#maintain(connection, ttlMs)
    const engines = [...byConnection].map(([connection, queues]) => this.#engine(connection, queues, times))
    const worker = await startWorker(engines, concurrency, (stopped) => this.#workerStopped(stopped))
    this.#workers.add(worker)
    return worker
  }

  async stop(deadline: Duration | undefined): Promise<void> {
    this.#stopped = true
    const workers = [...this.#workers]
    await Promise.all(workers.map((worker) => worker.stop(deadline === undefined ? {} : { deadline })))
    await this.#stopMaintenance()
  }

  async #workerStopped(worker: Worker): Promise<void> {
    this.#workers.delete(worker)
    if (this.#workers.size === 0) await this.#stopMaintenance()
  }

  async #stopMaintenance(): Promise<void> {
    const services = [...this.#maintenance.values()]
    this.#maintenance.clear()
    await Promise.all(services.map((service) => service.stop()))
  }

  #queuesByConnection(asked: readonly string[] | undefined): ReadonlyMap<string, readonly string[]> {
    const { registry, connections } = this.#internals
    const wanted = asked?.map((queue) => checkName(queue, 'queue'))
    if (wanted?.length === 0) throw invalidOption('queues', asked, 'at least one queue, or none to work on all of them')
    const byConnection = new Map<string, Set<string>>()
    for (const job of registry.all()) {
      if (wanted !== undefined && !wanted.includes(job.queue)) continue
      const connection = connections.ofJob(job)
      byConnection.set(connection, (byConnection.get(connection) ?? new Set()).add(job.queue))
    }
    for (const queue of wanted ?? []) {
      if ([...byConnection.values()].some((queues) => queues.has(queue))) continue
      const connection = connections.ofQueue(queue)
      byConnection.set(connection, (byConnection.get(connection) ?? new Set()).add(queue))
    }
    if (byConnection.size === 0) throw invalidOption('jobs', [], 'at least one registered job to work on')
    return new Map([...byConnection].map(([connection, queues]) => [connection, [...queues]]))
  }

  #engine(connection: string, queues: readonly string[], times: EngineParts['times']): EngineParts {
    const { registry, connections, hub } = this.#internals
    const { use, classify, unknownErrors = 'retry', onFailed } = this.#options
    return {
      backend: connections.backend(connection),
      connection,
      runtime: this.#runtime,
      events: hub,
      queues,
      definition: (name) => registry.find(name),
      services: this.#internals.runServices(connection),
      middleware: use?.run ?? [],
      classifiers: classify === undefined ? [] : [classify],
      unknownErrors,
      onFailed,
      host: { name: hostname(), pid: process.pid },
      times,
      flushTimeoutMs: this.#storeTimeoutMs,
    }
  }

  async #maintain(connection: string, workerTtlMs: number): Promise<void> {
    if (this.#options.maintenance === false || this.#maintenance.has(connection)) return
    const { registry, connections, hub } = this.#internals
    const service = createMaintenance({
      ...MAINTENANCE_TIMES,
      workerTtlMs,
      runtime: this.#runtime,
      backend: connections.backend(connection),
      connection,
      events: hub,
      retryOf: (name) => registry.find(name)?.retry,
      onFailed: (failed) => this.#tellFailed(failed),
    })
    this.#maintenance.set(connection, service)
    await service.start()
  }

  #tellFailed(failed: FailedInfo): void {
    for (const hook of [this.#internals.registry.find(failed.name)?.onFailed, this.#options.onFailed]) {
      if (hook === undefined) continue
      Promise.resolve()
        .then(() => hook(failed))
        .catch((error: unknown) => this.#runtime.logger.error({ jobId: failed.id, error }, 'a failed hook threw'))
    }
  }
}
