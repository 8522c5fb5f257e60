// `createTestMillrace`: the composition root of the kit. Manual and inline drive the client by hand on a
// virtual clock; live is a real Millrace with a real worker. All of them keep their jobs in memory.
import { AsyncLocalStorage } from 'node:async_hooks'
import { createClient } from '../client/client.ts'
import { checkDeclaredQueues } from '../client/client-options.ts'
import { DEFAULT_CONNECTION } from '../client/connections.ts'
import { createRegistry } from '../client/registry.ts'
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import type { SystemPolicy } from '../core/policy.ts'
import { createMillrace } from '../millrace.ts'
import { createHistory } from '../observability/history.ts'
import { checkMetrics, checkTelemetry } from '../observability/metrics-options.ts'
import { createObservability } from '../observability/observability.ts'
import { systemClock } from '../runtime/clock.ts'
import { createHealth } from '../observability/health-reader.ts'
import type { Clock } from '../runtime/clock.ts'
import { createTaskDesk } from '../tasks/desk.ts'
import { FailedHooks } from './bench.ts'
import { inlineClient } from './inline.ts'
import { Ledger, keepLedger } from './ledger.ts'
import { perform } from './perform.ts'
import { DEFAULT_SEED, seededRuntime } from './seeded.ts'
import { createStations } from './stations.ts'
import { Stepper } from './stepper.ts'
import type { LiveTestMillrace, TestMillrace, TestOptions } from './types.ts'
import { VirtualClock } from './virtual-clock.ts'
import { waitFor } from './wait-for.ts'

const OPTIONS = [
  'jobs',
  'queues',
  'secrets',
  'use',
  'classify',
  'unknownErrors',
  'onFailed',
  'logger',
  'mode',
  'start',
  'seed',
  'inlineErrors',
  'stuckAfter',
  'work',
] as const satisfies readonly (keyof TestOptions<readonly AnyJob[]>)[]

export function createTestMillrace<const Known extends readonly AnyJob[]>(
  options: TestOptions<Known> & { readonly mode: 'live' },
): Promise<LiveTestMillrace<Known>>
export function createTestMillrace<const Known extends readonly AnyJob[]>(
  options: TestOptions<Known> & { readonly mode?: 'manual' | 'inline' },
): Promise<TestMillrace<Known>>
export async function createTestMillrace<const Known extends readonly AnyJob[]>(
  options: TestOptions<Known>,
): Promise<LiveTestMillrace<Known> | TestMillrace<Known>> {
  checkKnownOptions(options, OPTIONS, 'createTestMillrace')
  const { mode = 'manual', inlineErrors = 'throw' } = options
  if (inlineErrors !== 'throw' && inlineErrors !== 'store')
    throw invalidOption('inlineErrors', inlineErrors, "'throw' or 'store'")
  checkDeclaredQueues(options.queues ?? {})
  switch (mode) {
    case 'live':
      return liveMillrace(options)
    case 'manual':
    case 'inline':
      return steppedMillrace(options, mode)
    default:
      throw invalidOption('mode', mode, "'manual', 'inline' or 'live'")
  }
}

async function liveMillrace<const Known extends readonly AnyJob[]>(
  options: TestOptions<Known>,
): Promise<LiveTestMillrace<Known>> {
  const { mode: _, start, seed = DEFAULT_SEED, inlineErrors: __, stuckAfter: ___, work, ...rest } = options
  if (start !== undefined) throw invalidOption('start', start, 'left out with live: it runs on the real clock')
  const ledger = ledgerFor(options, systemClock)
  const runtime = seededRuntime(systemClock, seed, options.logger)
  const mill = await createMillrace<Known>({ ...rest, connections: ledger.backends(), runtime })
  const worker = await mill.work(work)
  const live: LiveTestMillrace<Known> = {
    ...mill,
    mode: 'live',
    worker,
    waitFor: async (target, status, wait) => waitFor(ledger, target, status, wait),
  }
  return keepLedger(live, ledger)
}

async function steppedMillrace<const Known extends readonly AnyJob[]>(
  options: TestOptions<Known>,
  mode: 'manual' | 'inline',
): Promise<TestMillrace<Known>> {
  const { queues, secrets, use, onFailed, seed = DEFAULT_SEED } = options
  const clock = new VirtualClock(options.start)
  const ledger = ledgerFor(options, clock)
  const runtime = seededRuntime(clock, seed, options.logger)
  const backends = ledger.backends()
  const hooks = new FailedHooks()
  const seeing = createObservability({
    runtime,
    connections: backends,
    metrics: checkMetrics({ history: false }),
    telemetry: checkTelemetry(),
  })
  const { internals, ...client } = createClient<Known>({
    jobs: options.jobs,
    connections: backends,
    runtime,
    middleware: use?.enqueue ?? [],
    policy: policyOf(options),
    probe: seeing.probe,
    tracing: seeing.tracing,
    ...(onFailed && { onFailed: hooks.wrap(onFailed) }),
    ...(queues && { queues }),
    ...(secrets && { secrets }),
  })
  await internals.ensureQueues()
  const inside = new AsyncLocalStorage<true>()
  const { probe } = seeing
  const stations = createStations(options, { runtime, ledger, backends, internals, hooks, inside, probe })
  for (const { line } of stations.values()) await line.open()
  const stepper = new Stepper({ stations: [...stations.values()], clock, hooks, inside, isInline: mode === 'inline' })
  clock.follow(stepper)

  async function stop(): Promise<void> {
    await internals.stopConsumers()
    await stepper.stop()
    await Promise.all(Object.values(backends).map((backend) => backend.stop()))
  }

  const performing = { internals, runtime, stationOf: (connection: string) => stations.get(connection)! }
  const mill = {
    ...(mode === 'manual'
      ? client
      : inlineClient(client, { stepper, ledger, errors: options.inlineErrors ?? 'throw' })),
    health: createHealth({ connections: backends, clock }),
    mode,
    clock,
    tasks: createTaskDesk({ ...internals, runtime, schedules: client.schedules }),
    drain: (drain) => stepper.drain(drain),
    runNext: (next) => stepper.runNext(next),
    perform: async (job, ...[input, performOptions]) =>
      // The report carries the result that the definition of this very job returned.
      (await perform(performing, job, input, performOptions)) as never,
    waitFor: async (target, status, wait) => waitFor(ledger, target, status, wait),
    work: () => Promise.reject(worksByHand(mode)),
    metrics: seeing.metrics,
    history: createHistory(() => Object.values(backends).map(({ notes }) => notes), clock),
    maintain: () => Promise.reject(worksByHand(mode)),
    stop,
    [Symbol.asyncDispose]: stop,
  } satisfies TestMillrace<Known>
  return keepLedger<TestMillrace<Known>>(mill, ledger)
}

/** Every connection that a job or a queue names gets a world of its own. */
function ledgerFor({ jobs, queues = {} }: TestOptions<readonly AnyJob[]>, clock: Clock): Ledger {
  const registry = createRegistry(jobs)
  const named = [...registry.all(), ...Object.values(queues)].map(({ connection }) => connection)
  return new Ledger(new Set([DEFAULT_CONNECTION, ...named.filter((name) => name !== undefined)]), clock, registry)
}

/** How consumers judge an error that no job kind knows. */
function policyOf({ classify, unknownErrors = 'retry' }: TestOptions<readonly AnyJob[]>): SystemPolicy {
  if (unknownErrors !== 'retry' && unknownErrors !== 'fail')
    throw invalidOption('unknownErrors', unknownErrors, "'retry' or 'fail'")
  return { classifiers: classify === undefined ? [] : [classify], unknownErrors }
}

function worksByHand(mode: 'manual' | 'inline'): MillraceError {
  const message = `in ${mode} mode no worker runs: call drain(), or create the Millrace with mode: 'live'`
  return new MillraceError('NOT_SUPPORTED', message, { details: { mode } })
}
