// The facade: client, workers and maintenance over the chosen backends. The composition root; every part
// gets its dependencies here and nowhere else.
import { createClient } from './client/client.ts'
import type { ClientOptions } from './client/client.ts'
import type { Client } from './client/client-types.ts'
import type { EnqueueMiddleware } from './client/middleware.ts'
import type { Schedules } from './client/schedules.ts'
import type { Classifier } from './core/classify.ts'
import type { AnyJob, FailedHook, RunMiddleware } from './core/definition.ts'
import { parseDuration } from './core/duration.ts'
import type { Duration } from './core/duration.ts'
import { DEFAULTS } from './core/limits.ts'
import { checkKnownOptions, invalidOption } from './core/names.ts'
import type { SystemPolicy } from './core/policy.ts'
import { checkRetention } from './maintenance/retention-options.ts'
import type { RetentionOptions } from './maintenance/retention-options.ts'
import { createHistory } from './observability/history.ts'
import type { History } from './observability/history.ts'
import { checkMetrics, checkTelemetry } from './observability/metrics-options.ts'
import type { MetricsOptions, TelemetryOptions } from './observability/metrics-options.ts'
import { createObservability } from './observability/observability.ts'
import type { MillMetrics } from './observability/observability.ts'
import { createHealth } from './observability/health-reader.ts'
import type { Health } from './observability/health-reader.ts'
import { createEventHub } from './runtime/events.ts'
import type { Logger } from './runtime/logger.ts'
import { createRuntime } from './runtime/runtime.ts'
import type { Runtime } from './runtime/runtime.ts'
import type { Backend } from './store/ports.ts'
import { openStores } from './stores.ts'
import type { StoreOptions, Stores } from './stores.ts'
import { builtInTasks } from './tasks/built-in.ts'
import { createTaskDesk } from './tasks/desk.ts'
import type { Tasks } from './tasks/desk.ts'
import type { TasksOptions } from './tasks/options.ts'
import { checkDeadline } from './worker/worker.ts'
import type { Worker } from './worker/worker.ts'
import { Works } from './works.ts'
import type { WorkOptions } from './works.ts'

export interface MillraceOptions<Known extends readonly AnyJob[]> extends StoreOptions {
  readonly jobs: Known
  /** For queues that nobody declares: attempts, retry, priority, limits, retention. */
  readonly defaults?: ClientOptions<Known>['defaults']
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
  /** How long finished jobs, their archive and their logs are kept, where a queue has no period of its own. */
  readonly retention?: RetentionOptions
  /** The built-in tasks as jobs and schedules, in the queue `millrace.tasks`. Default: none; `{}`: all with their defaults. */
  readonly tasks?: TasksOptions
  /** How long a store call may take before its outcome counts as unknown. Default 30 s. */
  readonly storeTimeout?: Duration
  /** Counters and histograms of this process, and their history in the store. Default true. */
  readonly metrics?: boolean | MetricsOptions
  /** What goes to OpenTelemetry, if the process has registered an SDK of it. */
  readonly telemetry?: TelemetryOptions
  /** Time, randomness and ids, for tests. */
  readonly runtime?: Partial<Runtime>
}

export interface Millrace<Known extends readonly AnyJob[] = readonly AnyJob[]> extends Client<Known>, AsyncDisposable {
  /** Is the system doing its work: one report, and the numbers that scalers outside ask for. */
  readonly health: Health
  /** The built-in tasks: run one now, hand one to a worker, see how they ended. */
  readonly tasks: Tasks
  /** Runs jobs in this process until `stop()`. */
  work(options?: WorkOptions): Promise<Worker>
  /** What this process has counted, and what the stores say. */
  readonly metrics: MillMetrics
  /** What all processes counted, per minute or longer: for charts. */
  readonly history: History
  /** Runs maintenance and schedules in this process without running jobs, until `stop()`; `ttl` as of its workers. */
  maintain(options?: Pick<WorkOptions, 'ttl'>): Promise<void>
  /** Stops workers, maintenance and connections. Idempotent. */
  stop(options?: { readonly deadline?: Duration }): Promise<void>
}

const OPTIONS = [
  'jobs',
  'postgres',
  'redis',
  'schema',
  'dataDir',
  'backend',
  'connections',
  'defaults',
  'queues',
  'secrets',
  'use',
  'classify',
  'unknownErrors',
  'onFailed',
  'logger',
  'maintenance',
  'retention',
  'tasks',
  'storeTimeout',
  'metrics',
  'telemetry',
  'runtime',
] as const satisfies readonly (keyof MillraceOptions<readonly AnyJob[]>)[]

export async function createMillrace<const Known extends readonly AnyJob[]>(
  options: MillraceOptions<Known>,
): Promise<Millrace<Known>> {
  checkOptions(options)
  const runtime = createRuntime({ ...options.runtime, ...(options.logger && { logger: options.logger }) })
  const storeTimeoutMs = parseDuration(options.storeTimeout ?? DEFAULTS.storeTimeoutMs, 'storeTimeout', { minMs: 1 })
  const hub = createEventHub(runtime.logger)
  const policy = systemPolicy(options)
  checkRetention(options.retention)
  const metrics = checkMetrics(options.metrics)
  const telemetry = checkTelemetry(options.telemetry)
  const tasks = options.tasks === undefined ? undefined : builtInTasks(options.tasks)
  const stores = await openStores(options, runtime.logger)
  const backends = new Set(Object.values(stores.connections))
  const seeing = createObservability({ runtime, connections: stores.connections, metrics, telemetry })
  const { internals, ...client } = await releasing(stores, async () => {
    const created = createClient<Known>({
      // Known by name alone: their types are nobody's input.
      jobs: tasks === undefined ? options.jobs : ([...options.jobs, ...tasks.jobs] as readonly AnyJob[] as Known),
      connections: stores.connections,
      runtime,
      hub,
      storeTimeoutMs,
      middleware: options.use?.enqueue ?? [],
      policy,
      probe: seeing.probe,
      tracing: seeing.tracing,
      ...(seeing.watchCalls && { watchCalls: seeing.watchCalls }),
      ...(options.onFailed && { onFailed: options.onFailed }),
      ...(options.defaults !== undefined && { defaults: options.defaults }),
      ...(options.queues !== undefined && { queues: options.queues }),
      ...(options.secrets !== undefined && { secrets: options.secrets }),
    })
    tasks?.attach({
      runtime,
      connections: created.internals.connections,
      ...(options.retention !== undefined && { retention: options.retention }),
    })
    await startAll(backends)
    return created
  }).catch((error: unknown) => {
    seeing.stop()
    throw error
  })
  // By name, as the tasks know their jobs.
  const schedules = client.schedules as Schedules
  const works = new Works({
    runtime,
    internals,
    policy,
    middleware: options.use?.run ?? [],
    onFailed: options.onFailed,
    maintenance: options.maintenance ?? true,
    retention: options.retention,
    storeTimeoutMs,
    probe: seeing.probe,
    tracing: seeing.tracing,
    beside: (backend, isLeading) => seeing.folders(backend, isLeading),
  })
  const { connections } = internals
  const recorder = seeing.recorder(connections)
  await recorder.start()
  let stopping: Promise<void> | undefined

  async function stopAll(deadlineMs: number): Promise<void> {
    // Whatever cannot be stopped must not keep the rest running.
    seeing.stop()
    const consumers = await Promise.allSettled([internals.stopConsumers()])
    const workers = await Promise.allSettled([works.stop(deadlineMs)])
    const recorded = await Promise.allSettled([recorder.stop()])
    const closed = await Promise.allSettled([...backends].map((backend) => backend.stop()))
    const servers = await Promise.allSettled([stores.release()])
    const failed = [...consumers, ...workers, ...recorded, ...closed, ...servers].find(
      ({ status }) => status === 'rejected',
    )
    if (failed?.status === 'rejected') throw failed.reason
  }

  return {
    ...client,
    health: createHealth({ connections: stores.connections, clock: runtime.clock }),
    metrics: seeing.metrics,
    history: createHistory(() => connections.names.map((name) => connections.backend(name).notes), runtime.clock),
    maintain: (times = {}) => works.maintain(times),
    tasks: createTaskDesk({ ...internals, runtime, schedules, tasks, retention: options.retention }),
    async work(work = {}) {
      await tasks?.schedule(schedules)
      return works.work(work)
    },
    async stop(stop = {}) {
      // A wrong option must not leave it half stopped.
      const deadlineMs = checkDeadline(stop)
      await (stopping ??= stopAll(deadlineMs))
    },
    [Symbol.asyncDispose]: () => (stopping ??= stopAll(DEFAULTS.drainDeadlineMs)),
  }
}

/** What was opened for a Millrace that cannot be made is let go of. */
async function releasing<Value>(stores: Stores, make: () => Promise<Value>): Promise<Value> {
  try {
    return await make()
  } catch (error) {
    await stores.release()
    throw error
  }
}

/** All or none: those that started are stopped again. */
async function startAll(backends: ReadonlySet<Backend>): Promise<void> {
  const all = [...backends]
  const started = await Promise.allSettled(all.map((backend) => backend.start()))
  const failed = started.find((one) => one.status === 'rejected')
  if (failed === undefined) return
  const running = all.filter((_, index) => started[index]?.status === 'fulfilled')
  await Promise.allSettled(running.map((backend) => backend.stop()))
  throw failed.reason
}

function checkOptions(options: MillraceOptions<readonly AnyJob[]>): void {
  checkKnownOptions(options, OPTIONS, 'createMillrace')
  const { use = {}, classify, onFailed, maintenance, logger } = options
  checkKnownOptions(use, ['enqueue', 'run'], 'use')
  for (const [name, layers] of Object.entries(use)) {
    if (!Array.isArray(layers) || layers.some((layer) => typeof layer !== 'function')) {
      throw invalidOption(`use.${name}`, layers, 'an array of functions')
    }
  }
  if (classify !== undefined && typeof classify !== 'function') throw invalidOption('classify', classify, 'a function')
  if (onFailed !== undefined && typeof onFailed !== 'function') throw invalidOption('onFailed', onFailed, 'a function')
  if (maintenance !== undefined && typeof maintenance !== 'boolean') {
    throw invalidOption('maintenance', maintenance, 'true or false')
  }
  const levels = ['debug', 'info', 'warn', 'error'] as const
  if (logger !== undefined && levels.some((level) => typeof logger?.[level] !== 'function')) {
    throw invalidOption('logger', logger, `an object with ${levels.join(', ')}`)
  }
}

function systemPolicy({ classify, unknownErrors = 'retry' }: MillraceOptions<readonly AnyJob[]>): SystemPolicy {
  if (unknownErrors !== 'retry' && unknownErrors !== 'fail') {
    throw invalidOption('unknownErrors', unknownErrors, "'retry' or 'fail'")
  }
  return { classifiers: classify === undefined ? [] : [classify], unknownErrors }
}
