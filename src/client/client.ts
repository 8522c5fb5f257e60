// The client: everything a producer or an operator can ask, composed of its parts. The facade adds
// workers, maintenance and the choice of backends on top of it.
import type { AnyJob, FailedHook } from '../core/definition.ts'
import type { NewJob } from '../core/job.ts'
import { DEFAULTS } from '../core/limits.ts'
import { invalidOption } from '../core/names.ts'
import type { SecretGuard } from '../core/payload.ts'
import { DEFAULT_POLICY } from '../core/policy.ts'
import type { SystemPolicy } from '../core/policy.ts'
import { createEventHub } from '../runtime/events.ts'
import type { EventHub } from '../runtime/events.ts'
import type { CallWatch, Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Tracing } from '../runtime/tracing.ts'
import type { Backend, InsertReply } from '../store/ports.ts'
import type { QueueSettings } from '../store/queue-store.ts'
import { createBatchDesk } from './batches.ts'
import type { BatchOptions } from './batch-options.ts'
import type { BatchDesk, OpenBatch } from './batches.ts'
import { boundedBackend } from './bounded-backend.ts'
import type { Batch, Client, EnqueueVerbs } from './client-types.ts'
import { checkBackends, checkDeclaredQueues, checkSecrets } from './client-options.ts'
import { createConnections } from './connections.ts'
import type { Connections } from './connections.ts'
import { createConsumer, createConsumerDesk } from './consumer.ts'
import { createDeadLetters } from './dead-letters.ts'
import { checkReason, createEnding } from './ending.ts'
import type { Ending } from './ending.ts'
import { createEnqueuer } from './enqueue.ts'
import type { BulkLine, Enqueuer, EnqueuerParts, JobName } from './enqueue.ts'
import type { EnqueueOptions } from './enqueue-options.ts'
import { enqueueFlow } from './flows.ts'
import type { FlowShape } from './flows.ts'
import type { HandleServices } from './handle.ts'
import { checkJobRef } from './ids.ts'
import { createEnsure } from './inserter.ts'
import type { EnsureQueues } from './inserter.ts'
import { createIn } from './inside.ts'
import { createJobs } from './jobs.ts'
import { createMetadata } from './metadata.ts'
import type { EnqueueMiddleware } from './middleware.ts'
import { createPrepare } from './prepare.ts'
import { queueSettings } from './queue-options.ts'
import type { DeclaredQueue, QueueOptions } from './queue-options.ts'
import { createQueues } from './queues.ts'
import { createRegistry } from './registry.ts'
import type { Registry } from './registry.ts'
import { createAwaitResult } from './results.ts'
import type { AwaitResult } from './results.ts'
import { createRunServices } from './run-services.ts'
import type { RunServicesFactory } from './run-services.ts'
import { createSchedules } from './schedules.ts'
import { retryStore } from './store-retry.ts'
import type { WaitOptions } from './wait-options.ts'

export interface ClientOptions<Known extends readonly AnyJob[]> {
  readonly jobs: Known
  /** By name; one of them is `default`. Started and stopped by whoever passes them. */
  readonly connections: Readonly<Record<string, Backend>>
  readonly runtime: Runtime
  readonly hub?: EventHub
  /** Settings of queues that do not exist yet and are not declared. */
  readonly defaults?: QueueOptions
  /** Settings of queues that do not exist yet, and which connection a queue lives on. */
  readonly queues?: Readonly<Record<string, DeclaredQueue>>
  /** Payload fields that look like secrets. Default: warn, once per job kind. */
  readonly secrets?: SecretGuard
  /** How errors are judged that no job kind judges: for consumers, which settle on this side. */
  readonly policy?: SystemPolicy
  readonly onFailed?: FailedHook
  /** Around every enqueue, the first one outermost. */
  readonly middleware?: readonly EnqueueMiddleware[]
  /** Without an answer for this long a store call has failed. Default 30 s. */
  readonly storeTimeoutMs?: number
  readonly probe?: Probe
  readonly tracing?: Tracing | undefined
  /** Told of every store call of this connection. */
  readonly watchCalls?: (connection: string) => CallWatch
}

/** What the facade builds workers and transactions from. */
export interface ClientInternals<Known extends readonly AnyJob[]> {
  readonly registry: Registry
  readonly connections: Connections
  readonly enqueuer: Enqueuer
  readonly hub: EventHub
  runServices(connection: string): RunServicesFactory
  /** Stops every consumer that is still open. */
  stopConsumers(): Promise<void>
  /** Writes the records of the declared queues and of the queues of all jobs. */
  ensureQueues(): Promise<void>
  /** The same verbs over another insert: inside the transaction of a caller. Nothing is retried there. */
  through(insert: (connection: string, jobs: readonly NewJob[]) => Promise<InsertReply>): EnqueueVerbs<Known>
}

export interface CreatedClient<Known extends readonly AnyJob[]> extends Client<Known> {
  readonly internals: ClientInternals<Known>
}

export function createClient<const Known extends readonly AnyJob[]>(
  options: ClientOptions<Known>,
): CreatedClient<Known> {
  const {
    runtime,
    queues: declared = {},
    secrets = { mode: 'warn' },
    middleware = [],
    policy = DEFAULT_POLICY,
  } = options
  checkSecrets(secrets)
  checkBackends(options.connections)
  checkDeclaredQueues(declared)
  const registry = createRegistry(options.jobs)
  const connections = createConnections(bound(options), declared, registry.all())
  const hub = options.hub ?? createEventHub(runtime.logger)
  const settingsOf = (queue: string) =>
    queueSettings(queue, { ...options.defaults, ...(Object.hasOwn(declared, queue) && declared[queue]) })
  const isNamed = (queue: string) => Object.hasOwn(declared, queue) || registry.all().some((job) => job.queue === queue)
  // Mistakes in the declarations are told now, not at the first enqueue.
  Object.keys(declared).forEach(settingsOf)
  for (const job of registry.all()) connections.ofJob(job)

  const { probe, tracing } = options
  const ending = createEnding(connections, runtime, probe)
  const awaitResult = createAwaitResult(connections, runtime)
  const handles = handleServices(connections, awaitResult, ending)
  const prepare = createPrepare({ runtime, connections, secrets })
  const ensureOf = perConnection((name) =>
    createEnsure({ runtime, queues: connections.backend(name).queues, settingsOf }),
  )
  const base = { runtime, hub, registry, connections, middleware }
  const parts: EnqueuerParts = { ...base, prepare, handles, ensureOf, probe, tracing }
  const enqueuer = createEnqueuer(parts)
  const through = (insertVia: NonNullable<EnqueuerParts['insertVia']>) =>
    // As below: the types are those of the definitions.
    verbsOf(createEnqueuer({ ...parts, insertVia }), runtime) as unknown as EnqueueVerbs<Known>
  const desk = createBatchDesk({ connections, runtime, enqueuer, ending })
  const jobs = createJobs(connections, ending)
  const consumers = createConsumerDesk()

  const client = {
    ...verbsOf(enqueuer, runtime),
    in: createIn(connections, through),
    async enqueueAndWait(job: JobName, input?: unknown, enqueueOptions?: EnqueueOptions, wait?: WaitOptions) {
      return (await enqueuer.one(job, input, enqueueOptions)).result(wait)
    },
    async result(ref: unknown, wait?: WaitOptions) {
      const { id, connection } = checkJobRef(ref, 'job id')
      return awaitResult(id, connection, wait)
    },
    batch: async (name?: string, batchOptions?: BatchOptions) =>
      batchOf(await desk.open(name, batchOptions), desk, enqueuer),
    enqueueBatch: async (name: string, lines: readonly BulkLine[], callbacks?: BatchOptions) =>
      batchOf(await desk.whole(name, lines, callbacks), desk, enqueuer),
    jobs,
    queues: createQueues(connections, runtime, (queue) => (isNamed(queue) ? settingsOf(queue) : null)),
    batches: reading(desk),
    schedules: createSchedules(connections, runtime, enqueuer),
    deadLetters: createDeadLetters(connections, runtime, jobs),
    metadata(named: JobName) {
      const job = registry.resolve(named)
      return createMetadata(connections.backend(connections.ofJob(job)).notes, runtime, job.name)
    },
    consumer: (consumerOptions: Parameters<Client['consumer']>[0]) =>
      consumers.open(
        createConsumer(
          { connections, runtime, registry, hub, policy, onFailed: options.onFailed, probe, tracing },
          consumerOptions,
        ),
      ),
    on: ((name, listener) => hub.on(name, listener)) satisfies Client['on'],
    internals: {
      registry,
      connections,
      enqueuer,
      hub,
      runServices: (name: string) => createRunServices({ runtime, enqueuer, backend: connections.backend(name) }),
      stopConsumers: () => consumers.stopAll(),
      ensureQueues: () => ensureQueues(options, registry, connections, settingsOf),
      through,
    },
  }
  // At run time jobs are names and values; `Client` adds the types that the registered definitions promise.
  return client as unknown as CreatedClient<Known>
}

/** Made when it is first asked for. */
function perConnection(make: (connection: string) => EnsureQueues): (connection: string) => EnsureQueues {
  const made = new Map<string, EnsureQueues>()
  return (connection) => {
    let ensure = made.get(connection)
    if (ensure === undefined) made.set(connection, (ensure = make(connection)))
    return ensure
  }
}

function handleServices(connections: Connections, awaitResult: AwaitResult, ending: Ending): HandleServices {
  return {
    awaitResult,
    status: async (id, connection) => (await connections.locate(id, connection))?.job.status ?? null,
    cancel: async (id, connection, reason = 'cancelled by its producer') =>
      (await ending.cancel([{ id, connection }], checkReason(reason)))[0]!,
  }
}

function bound(options: ClientOptions<readonly AnyJob[]>): Readonly<Record<string, Backend>> {
  const { connections, runtime, storeTimeoutMs = DEFAULTS.storeTimeoutMs, watchCalls } = options
  const entries = Object.entries(connections)
  return Object.fromEntries(
    entries.map(([name, backend]) => [
      name,
      boundedBackend(backend, runtime.clock, storeTimeoutMs, watchCalls?.(name)),
    ]),
  )
}

function verbsOf(enqueuer: Enqueuer, runtime: Runtime) {
  return {
    enqueue: (job: JobName, input?: unknown, options?: EnqueueOptions) => enqueuer.one(job, input, options),
    enqueueMany: (lines: readonly BulkLine[]) => enqueuer.many(withoutExtras(lines)),
    flow: (tree: FlowShape) => enqueueFlow(tree, enqueuer, runtime),
  }
}

/** A caller has three things to say about a job; the fourth is Millrace's own. */
function withoutExtras(lines: readonly BulkLine[]): readonly BulkLine[] {
  if (!Array.isArray(lines)) return lines
  return lines.map((line: BulkLine) => (Array.isArray(line) && line.length > 3 ? [line[0], line[1], line[2]] : line))
}

function reading(desk: BatchDesk): Client['batches'] {
  return {
    get: (id) => desk.get(id),
    list: (page) => desk.list(page),
    cancel: (id, connection) => desk.cancel(id, connection),
  }
}

function batchOf({ id, connection }: OpenBatch, desk: BatchDesk, enqueuer: Enqueuer): Batch {
  const own = { id, connection }
  const batch = {
    id,
    connection,
    add: async (job: JobName, input?: unknown, options?: EnqueueOptions) =>
      enqueuer.one(job, input, joining(own, options)),
    async addMany(lines: readonly BulkLine[]) {
      if (!Array.isArray(lines)) throw invalidOption('addMany()', lines, 'an array of [job, input, options?]')
      const joined = lines.map((line: BulkLine): BulkLine =>
        // What is no line is refused, and named, where all lines are checked.
        Array.isArray(line) ? [line[0], line[1], joining(own, line[2])] : line,
      )
      return enqueuer.many(joined, 'a batch')
    },
    seal: () => desk.seal(id, connection),
    progress: async () => (await desk.info(id, connection)).progress,
    cancel: () => desk.cancel(id, connection),
    wait: (options?: WaitOptions) => desk.wait(id, connection, options),
  }
  // As above: the types are those of the definitions.
  return batch as unknown as Batch
}

function joining(own: OpenBatch, options: EnqueueOptions | undefined): EnqueueOptions {
  const { batch } = options ?? {}
  const id = typeof batch === 'object' ? batch?.id : batch
  if (id !== undefined && id !== own.id) {
    throw invalidOption('batch', batch, 'left out: the job joins the batch that it is added to')
  }
  return { ...options, batch: own }
}

async function ensureQueues(
  { runtime, queues = {} }: ClientOptions<readonly AnyJob[]>,
  registry: Registry,
  connections: Connections,
  settingsOf: (queue: string) => QueueSettings,
): Promise<void> {
  const byConnection = new Map(connections.names.map((name) => [name, new Set<string>()]))
  for (const queue of Object.keys(queues)) byConnection.get(connections.ofQueue(queue))?.add(queue)
  for (const job of registry.all()) byConnection.get(connections.ofJob(job))?.add(job.queue)
  for (const [connection, names] of byConnection) {
    const settings = [...names].map(settingsOf)
    if (settings.length > 0) await retryStore(runtime, () => connections.backend(connection).queues.ensure(settings))
  }
}
