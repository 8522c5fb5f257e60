// One run of a handler without a job in the store: the input takes the same way as through enqueue and
// worker, and the outcome is decided, not applied.
import type { ClientInternals } from '../client/client.ts'
import type { JobName } from '../client/enqueue.ts'
import type { AnyJob } from '../core/definition.ts'
import type { ClaimedJob, LeaseNumber } from '../core/job.ts'
import { DEFAULTS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions } from '../core/names.ts'
import { LIMITS } from '../core/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Bench } from './bench.ts'
import { reportOf } from './line.ts'
import type { Line } from './line.ts'
import type { PerformOptions, RunReport } from './types.ts'

export interface PerformParts {
  readonly internals: ClientInternals<readonly AnyJob[]>
  readonly runtime: Runtime
  readonly stationOf: (connection: string) => { readonly bench: Bench; readonly line: Line }
}

export async function perform(
  { internals, runtime, stationOf }: PerformParts,
  job: JobName,
  input: unknown,
  options: PerformOptions = {},
): Promise<RunReport> {
  checkKnownOptions(options, ['attempt', 'maxAttempts', 'meta'], 'perform()')
  const { maxAttempts, meta } = options
  const { job: prepared, connection } = await internals.enqueuer.prepare(job, input, {
    ...(maxAttempts !== undefined && { attempts: maxAttempts }),
    ...(meta !== undefined && { meta }),
    unique: false,
  })
  const queue = await internals.connections.backend(connection).queues.get(prepared.queue)
  const attemptsMax = prepared.maxAttempts ?? queue?.defaultAttempts ?? DEFAULTS.attempts
  const attempt = checkInteger(options.attempt ?? 1, 'attempt', 1, Math.min(attemptsMax, LIMITS.attemptsMax))
  const nowMs = runtime.clock.nowMs()
  const claimed: ClaimedJob = {
    id: prepared.id,
    lease: 0 as LeaseNumber, // no store will ever be asked about it
    queue: prepared.queue,
    name: prepared.name,
    payload: prepared.payload,
    priority: prepared.priority ?? queue?.defaultPriority ?? DEFAULTS.priority,
    attemptCount: attempt - 1,
    maxAttempts: attemptsMax,
    crashCount: 0,
    timeoutMs: prepared.timeoutMs,
    enqueuedAtMs: nowMs,
    runAtMs: nowMs,
    tags: prepared.tags ?? [],
    meta: prepared.meta ?? null,
    batch: null,
    parents: [],
    group: prepared.group ?? null,
    limitKey: prepared.limitKey ?? null,
    rateLimited: false,
  }
  const { bench, line } = stationOf(connection)
  const run = bench.runOf(claimed, internals.registry.resolve(job))
  const end = await bench.unlessStuck(run, bench.start(run))
  return reportOf(end, await line.decide(end), 'applied')
}
