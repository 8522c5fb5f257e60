// What a supervisor does beside its processes so that it can be seen: alerts with the worker that delivers them, and the HTTP
// port with the metrics of all its processes.
import { createAlerting } from '../alerts/alerting.ts'
import { notifyOptions } from '../alerts/notify-job.ts'
import type { NotifyJob } from '../alerts/notify-job.ts'
import type { AlertPlan } from '../alerts/options.ts'
import { ALERT_QUEUE } from '../core/alert-rules.ts'
import type { PoolFacts } from '../core/alert-facts.ts'
import { OTHER } from '../core/job-series.ts'
import type { JobSeries } from '../core/job-series.ts'
import { DEFAULTS } from '../core/limits.ts'
import type { Millrace } from '../millrace.ts'
import { prometheusText } from '../observability/prometheus.ts'
import { mergeSnapshots } from '../observability/registry.ts'
import type { MetricsSnapshot } from '../observability/registry.ts'
import type { Service } from '../runtime/service.ts'
import { TASK_QUEUE } from '../tasks/built-in.ts'
import type { Worker } from '../worker/worker.ts'
import type { RunningSupervisor, SupervisorContext } from './create-supervisor.ts'
import { createFleet } from './fleet.ts'

/** Notices and tasks are few, and wait for others most of the time. */
const OWN_CONCURRENCY = 4
const OWN_DRAIN = '5s'

export interface Alerts {
  readonly plan: AlertPlan
  readonly job: NotifyJob
}

export function alertingOf(context: SupervisorContext, { plan, job }: Alerts, host: string): Service {
  const { mill, connections, runtime } = context
  return createAlerting({
    runtime,
    plan,
    connections,
    host,
    enqueue: (input) => mill.enqueue(job, input, notifyOptions(input)),
    pools: () => poolsOf(context),
  })
}

/** Of all hosts: a leader tells of every crash loop. */
async function poolsOf({ connections, runtime }: SupervisorContext): Promise<readonly PoolFacts[]> {
  const notes = connections['default']?.notes
  if (notes === undefined) return []
  const supervisors = await createFleet({ notes, runtime }).list()
  return supervisors.flatMap(({ host, pools }) =>
    pools.map(({ name, state }) => ({ pool: name, host, isCrashLooping: state === 'crash-loop' })),
  )
}

/** Delivers notices and runs built-in tasks in this process: pools are for the jobs of users. */
export function ownWorkOf(mill: Millrace, hasTasks: boolean): Service {
  let worker: Worker | undefined
  return {
    async start() {
      const queues = hasTasks ? [ALERT_QUEUE, TASK_QUEUE] : [ALERT_QUEUE]
      worker = await mill.work({ queues, concurrency: OWN_CONCURRENCY })
    },
    stop: async () => worker?.stop({ deadline: OWN_DRAIN }),
  }
}

/** Prometheus text of this process and all its children, with what those counted that have gone: counters never fall. */
export function metricsTextOf(
  mill: Millrace,
  supervisor: Pick<RunningSupervisor, 'metrics' | 'on'>,
  seriesMax: number = DEFAULTS.metricSeries,
): () => Promise<string> {
  const within = boundNames(seriesMax)
  const sum = (snapshots: readonly MetricsSnapshot[]): MetricsSnapshot =>
    mergeSnapshots(snapshots.map(within), Infinity)
  let gone: MetricsSnapshot = { jobs: [], calls: [], loopLag: null }
  supervisor.on('exited', ({ metrics }) => {
    if (isSnapshot(metrics)) gone = sum([gone, { ...metrics, loopLag: null }])
  })
  return async () => {
    const living = supervisor.metrics().flatMap(({ metrics }) => (isSnapshot(metrics) ? [metrics] : []))
    return prometheusText(sum([mill.metrics.snapshot(), gone, ...living]), await mill.metrics.gauges())
  }
}

/**
 * Which pairs of queue and kind are shown by name is settled when they are first seen. If it were the most active ones, one
 * that changes places with another would make the counters of both fall.
 */
function boundNames(seriesMax: number): (snapshot: MetricsSnapshot) => MetricsSnapshot {
  const known = new Set<string>()
  const isKnown = ({ queue, kind }: JobSeries): boolean => {
    const name = `${queue}\0${kind}`
    if (known.size < seriesMax) known.add(name)
    return known.has(name)
  }
  return (snapshot) => ({
    ...snapshot,
    jobs: snapshot.jobs.map((series) => (isKnown(series) ? series : { ...series, queue: OTHER, kind: OTHER })),
  })
}

/** Children run the same code, and may be of the release before while it is rolled out. */
function isSnapshot(value: unknown): value is MetricsSnapshot {
  if (typeof value !== 'object' || value === null) return false
  return 'jobs' in value && Array.isArray(value.jobs) && 'calls' in value && Array.isArray(value.calls)
}
