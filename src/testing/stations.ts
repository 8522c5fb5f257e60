// The stations of a stepped Millrace, one per connection: the line that runs its jobs, and its upkeep.
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { World } from '../backends/memory/world.ts'
import type { ClientInternals } from '../client/client.ts'
import type { AnyJob } from '../core/definition.ts'
import { parseDuration } from '../core/duration.ts'
import type { WorkerId } from '../core/job.ts'
import { MAINTENANCE_TIMES } from '../maintenance/maintenance.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { Bench } from './bench.ts'
import type { FailedHooks } from './bench.ts'
import type { Ledger } from './ledger.ts'
import { Line } from './line.ts'
import type { Station } from './stepper.ts'
import type { TestOptions } from './types.ts'
import { Upkeep } from './upkeep.ts'

/** Shorter than the 5 s after which most runners give up without a reason. */
const STUCK_AFTER_MS = 4_000

export interface StationParts<Known extends readonly AnyJob[]> {
  readonly runtime: Runtime
  readonly ledger: Ledger
  readonly backends: Readonly<Record<string, Backend>>
  readonly internals: ClientInternals<Known>
  readonly hooks: FailedHooks
  readonly inside: AsyncLocalStorage<true>
  readonly probe: Probe
}

/** By connection: where its jobs run, and its upkeep. */
export function createStations<Known extends readonly AnyJob[]>(
  options: TestOptions<Known>,
  parts: StationParts<Known>,
): ReadonlyMap<string, Station> {
  const { ledger, backends } = parts
  const entries = [...ledger.worlds].map(([connection, world]) => {
    const place = { connection, world, backend: backends[connection]! }
    return [connection, createStation(options, parts, place)] as const
  })
  return new Map(entries)
}

interface Place {
  readonly connection: string
  readonly world: World
  readonly backend: Backend
}

function createStation<Known extends readonly AnyJob[]>(
  options: TestOptions<Known>,
  { runtime, internals, hooks, inside, probe }: StationParts<Known>,
  { connection, world, backend }: Place,
): Station {
  const { registry, connections, hub: events } = internals
  const { use, classify, unknownErrors = 'retry', onFailed } = options
  const stuckAfterMs = parseDuration(options.stuckAfter ?? STUCK_AFTER_MS, 'stuckAfter', { minMs: 1 })
  const worker = runtime.newId() as WorkerId // minted here
  const services = internals.runServices(connection)
  const bench = new Bench({ runtime, worker, middleware: use?.run ?? [], services, stuckAfterMs, inside })
  const own = registry.all().filter((job) => connections.ofJob(job) === connection)
  const queues = [...new Set(own.map(({ queue }) => queue))]
  const definition = (name: string): AnyJob | undefined => registry.find(name)
  const shared = { runtime, backend, connection, events, probe }
  const line = new Line({ ...shared, queues, worker, bench, hooks, definition, classify, unknownErrors, onFailed })
  const tellFailed = hooks.wrap(async (failed) => {
    for (const hook of [definition(failed.name)?.onFailed, onFailed]) await hook?.(failed)
  })
  const upkeep = new Upkeep(
    {
      ...shared,
      ...MAINTENANCE_TIMES,
      retryOf: (name) => definition(name)?.retry,
      onFailed: (failed) => {
        const report = (error: unknown): void =>
          runtime.logger.error({ jobId: failed.id, error }, 'a failed hook threw')
        tellFailed(failed).catch(report)
      },
    },
    world,
  )
  return { line, upkeep, bench, world }
}
