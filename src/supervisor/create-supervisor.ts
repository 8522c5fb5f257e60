// A supervisor over a configuration file: what `millrace supervise` runs, and what a program of your own may run instead.
import { hostname } from 'node:os'
import { createAlertNotes } from '../alerts/alert-notes.ts'
import type { AlertNotes } from '../alerts/alert-notes.ts'
import { createNotifyJob } from '../alerts/notify-job.ts'
import { checkAlerts } from '../alerts/options.ts'
import type { AlertOptions } from '../alerts/options.ts'
import type { Settings } from '../cli/settings.ts'
import type { AnyJob } from '../core/definition.ts'
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import { checkKnownOptions } from '../core/names.ts'
import type { HttpOptions } from '../http/http-options.ts'
import type { Millrace } from '../millrace.ts'
import { checkMetrics } from '../observability/metrics-options.ts'
import { jsonLogger } from '../runtime/logger.ts'
import type { Logger } from '../runtime/logger.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Service } from '../runtime/service.ts'
import type { Backend } from '../store/ports.ts'
import { createAutoscaler } from './autoscaler.ts'
import type { AutoscaleOptions } from './autoscale-options.ts'
import type { SupervisorEventName, SupervisorListener } from './events.ts'
import type { SupervisorRecord } from './fleet.ts'
import { forkChild } from './launch.ts'
import { checkSupervise } from './options.ts'
import type { SuperviseConfig } from './options.ts'
import { checkPools } from './pool-options.ts'
import type { PoolConfig } from './pool-options.ts'
import type { Alerts } from './seeing.ts'
import { alertingOf, metricsTextOf, ownWorkOf } from './seeing.ts'
import { Supervisor } from './supervisor.ts'

export interface SupervisorOptions {
  /** The configuration file, which every process loads. Default: millrace.config.ts (.mts, .js, .mjs) here or above. */
  readonly config?: string
  readonly cwd?: string
  /** Before what the configuration says. */
  readonly postgres?: string
  readonly redis?: string
  readonly schema?: string
  readonly pools?: Readonly<Record<string, PoolConfig>>
  readonly supervise?: SuperviseConfig
  readonly autoscale?: AutoscaleOptions | false
  /** False: nobody looks for alerts here. Default: the usual rules, told to the log. */
  readonly alerts?: AlertOptions | false
  /** Where health, metrics and scale signals are served; before what the configuration says. */
  readonly http?: Partial<HttpOptions>
  /** Started before the first process and stopped after the last one. */
  readonly services?: readonly SupervisorService[]
  /** Default: lines of JSON on stderr. */
  readonly logger?: Logger
  /** Of the log lines of the processes. */
  readonly json?: boolean
  readonly verbose?: boolean
}

export type SupervisorService = Service | ((context: SupervisorContext) => Service | Promise<Service>)

/** What a service may need; it lives as long as the supervisor. */
export interface SupervisorContext {
  readonly supervisor: RunningSupervisor
  readonly mill: Millrace
  readonly connections: Readonly<Record<string, Backend>>
  readonly runtime: Runtime
}

export interface RunningSupervisor {
  readonly id: string
  status(): SupervisorRecord
  metrics(): ReturnType<Supervisor['metrics']>
  on<Name extends SupervisorEventName>(name: Name, listener: SupervisorListener<Name>): () => void
  /** Processes take no new jobs; running ones go on. */
  quiet(target?: SupervisorTarget): void
  resume(target?: SupervisorTarget): void
  /** One process after the other. Answers how many were replaced. */
  restart(target?: SupervisorTarget): Promise<number>
  /** Null: as the autoscaler says. */
  scale(pool: string, processes: number | null): void
  stop(options?: { readonly deadline?: Duration }): Promise<void>
  /** At once. */
  kill(): Promise<void>
  /** Resolves when it has stopped, whoever asked for it. */
  readonly stopped: Promise<void>
}

export interface SupervisorTarget {
  readonly pool?: string
  readonly child?: string
}

const OPTIONS = [
  'config',
  'cwd',
  'postgres',
  'redis',
  'schema',
  'pools',
  'supervise',
  'autoscale',
  'alerts',
  'http',
  'services',
  'logger',
  'json',
  'verbose',
] as const satisfies readonly (keyof SupervisorOptions)[]

/** Resolves when it has started: its processes come up meanwhile. */
export async function createSupervisor(options: SupervisorOptions = {}): Promise<RunningSupervisor> {
  checkKnownOptions(options, OPTIONS, 'createSupervisor')
  // Not with the library: every job file imports that.
  const [{ readSettings }, { openMill }, { startEmbedded }, { createOpsPort, httpOf }] = await Promise.all([
    import('../cli/settings.ts'),
    import('../cli/session.ts'),
    import('../cli/servers.ts'),
    import('../cli/ops-port.ts'),
  ])
  const {
    cwd = process.cwd(),
    logger = jsonLogger(),
    json = true,
    verbose = false,
    config,
    postgres,
    redis,
    schema,
  } = options
  const flags = {
    ...(config !== undefined && { config }),
    ...(postgres !== undefined && { postgres }),
    ...(redis !== undefined && { redis }),
    ...(schema !== undefined && { schema }),
  }
  const io = { cwd, env: process.env }
  const settings = await readSettings(io, flags, { jobs: 'supervise', embedded: true })
  const { secret, ...times } = checkSupervise({ ...settings.supervise, ...options.supervise }, process.env)
  const autoscale = options.autoscale ?? settings.autoscale
  const { queues, concurrency, timeout, attempts, ttl } = settings.work ?? {}
  const pools = checkPools(options.pools ?? settings.pools, {
    ...times,
    ...(queues !== undefined && { queues }),
    ...(concurrency !== undefined && { concurrency }),
    ...(timeout !== undefined && { timeout }),
    ...(attempts !== undefined && { attempts }),
  })
  const runtime = createRuntime({ logger })
  const alerts = alertsOf(options.alerts ?? settings.alerts, runtime, () => opened.connections['default'])
  const port = createOpsPort({
    http: httpOf(settings.http, options.http ?? {}, io.env),
    clock: runtime.clock,
    log: logger,
  })
  const opened = await openMill({ startEmbedded }, withJob(settings, alerts?.job), { logger })
  const { mill, connections } = opened
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= opened.stop())
  try {
    const maintenance = settings.options.maintenance ?? true
    const supervisor = new Supervisor({
      ...times,
      runtime,
      id: supervisorId(runtime),
      host: { name: hostname(), pid: process.pid },
      backends: backendsOf(connections),
      pools,
      secret,
      source: { cwd, flags, json, verbose, maintenance: false },
      launch: forkChild(cwd),
    })
    const running = face(supervisor)
    const context = { supervisor: running, mill, connections, runtime }
    const seriesMax = checkMetrics(settings.options.metrics)?.seriesMax
    const isWorking = (): boolean => supervisor.status().state === 'running'
    port.attach(mill, { metricsText: metricsTextOf(mill, running, seriesMax), isWorking })
    const hasTasks = settings.options.tasks !== undefined
    const services: Service[] = [
      { start: () => Promise.resolve(), stop: close },
      port,
      ...(maintenance ? [maintenanceOf(mill, ttl)] : []),
      ...(autoscale === false ? [] : [autoscalerOf(connections, runtime, autoscale, times.processesMax)]),
      ...(alerts === undefined ? [] : [alertingOf(context, alerts, supervisor.id)]),
      ...(alerts === undefined && !hasTasks ? [] : [ownWorkOf(mill, hasTasks)]),
    ]
    for (const service of options.services ?? []) {
      services.push(typeof service === 'function' ? await service(context) : service)
    }
    await supervisor.start(services)
    port.state('working')
    const facts = { supervisor: supervisor.id, pools: pools.map(({ name }) => name), store: settings.store.shown }
    logger.info({ ...facts, signed: secret !== undefined }, 'supervisor started')
    return running
  } catch (error) {
    await close().catch(() => undefined)
    throw error
  }
}

/** The store is asked for when a notice is given up: by then it is open. */
function alertsOf(
  options: AlertOptions | false | undefined,
  runtime: Runtime,
  store: () => Backend | undefined,
): Alerts | undefined {
  if (options === false) return undefined
  const plan = checkAlerts(options)
  const record: AlertNotes['record'] = async (entry) => {
    const notes = store()?.notes
    if (notes !== undefined) await createAlertNotes(notes).record(entry)
  }
  return { plan, job: createNotifyJob(plan, { runtime, notes: { record } }) }
}

function withJob(settings: Settings, job: AnyJob | undefined): Settings {
  if (job === undefined) return settings
  return { ...settings, options: { ...settings.options, jobs: [...settings.options.jobs, job] } }
}

function maintenanceOf(mill: Millrace, ttl: Duration | undefined): Service {
  return {
    start: () => mill.maintain(ttl === undefined ? {} : { ttl }),
    // With everything else of it.
    stop: () => Promise.resolve(),
  }
}

/** Plans are kept where the supervisors look for them, on the first connection. */
function autoscalerOf(
  connections: Readonly<Record<string, Backend>>,
  runtime: Runtime,
  options: AutoscaleOptions | undefined,
  processesMax: number,
): Service {
  const [backend, ...others] = backendsOf(connections)
  return createAutoscaler({ runtime, backend, others, processesMax, ...(options !== undefined && { options }) })
}

/** Jobs in the memory of one process are no jobs for another. */
function backendsOf(connections: Readonly<Record<string, Backend>>): readonly [Backend, ...Backend[]] {
  const { default: first, ...others } = connections
  const all = [first, ...Object.values(others)].filter((backend) => backend !== undefined)
  const [store, ...rest] = all
  if (all.some(({ capabilities }) => !capabilities.durable)) {
    const message =
      'jobs in the memory of one process cannot be run by others: supervise a store of PostgreSQL or Redis'
    throw new MillraceError('NOT_SUPPORTED', message)
  }
  if (store === undefined) throw new MillraceError('CONNECTION_NOT_FOUND', 'there is no connection to supervise')
  return [store, ...rest]
}

const HOST_CHARS_MAX = 40
const UNIQUE_CHARS = 8

/** Readable, and new with every life: a command for the one before means nothing to this one. */
function supervisorId(runtime: Runtime): string {
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9.-]/g, '-')
    .slice(0, HOST_CHARS_MAX)
  return `${host}-${runtime.newId().slice(-UNIQUE_CHARS)}`
}

function face(supervisor: Supervisor): RunningSupervisor {
  return {
    id: supervisor.id,
    stopped: supervisor.stopped,
    status: () => supervisor.status(),
    metrics: () => supervisor.metrics(),
    on: (name, listener) => supervisor.on(name, listener),
    quiet: (target) => supervisor.quiet(target),
    resume: (target) => supervisor.resume(target),
    restart: (target) => supervisor.restart(target),
    scale: (pool, processes) => supervisor.scale(pool, processes),
    stop: ({ deadline } = {}) =>
      supervisor.stop(deadline === undefined ? {} : { deadlineMs: parseDuration(deadline, 'deadline') }),
    kill: () => supervisor.kill(),
  }
}
