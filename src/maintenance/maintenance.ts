// The periodic services of one connection, behind one leader lease. Every process that works runs them;
// only the leader acts.
import { DEFAULTS } from '../core/limits.ts'
import type { Service } from '../runtime/service.ts'
import { createLeader } from './leader.ts'
import type { MaintenanceOptions } from './options.ts'
import { createPromoter } from './promoter.ts'
import { createPruner } from './pruner.ts'
import { createRescuer } from './rescuer.ts'
import { createScheduler } from './scheduler.ts'

export const MAINTENANCE_TIMES = {
  periodMs: DEFAULTS.maintenancePeriodMs,
  workerTtlMs: DEFAULTS.workerTtlMs,
  leaderTtlMs: DEFAULTS.leaderTtlMs,
} as const

/** Below it a pause of the leader's process would cost it the lead; the rescue of a very short ttl then waits for the lease. */
const LEADER_TTL_MIN_MS = 2_000

/** Who asks for a shorter ttl wants lost work back soon: when a worker dies that also leads, the next leader must be there first. */
export function timesFor(workerTtlMs: number): Pick<MaintenanceOptions, 'periodMs' | 'workerTtlMs' | 'leaderTtlMs'> {
  if (workerTtlMs >= DEFAULTS.workerTtlMs) return { ...MAINTENANCE_TIMES, workerTtlMs }
  return { ...MAINTENANCE_TIMES, workerTtlMs, leaderTtlMs: Math.max(workerTtlMs * 0.75, LEADER_TTL_MIN_MS) }
}

/** How long the services of a backend may be without a leader. */
const UPKEEP_TTL_MS = 3_000

export function createMaintenance(options: MaintenanceOptions): Service {
  const { runtime, backend, leaderTtlMs: ttlMs } = options
  const leader = createLeader({ runtime, workers: backend.workers, role: 'maintenance', ttlMs })
  const isLeading = (): boolean => leader.isLeading()
  const services: Service[] = [
    createPromoter(options, isLeading),
    createRescuer(options, isLeading),
    createScheduler(options, isLeading),
    createPruner(options, isLeading),
    ...(options.beside?.(isLeading) ?? []),
  ]
  // What a backend needs done all the time waits for no long lease.
  const dispatcher = createLeader({
    runtime,
    workers: backend.workers,
    role: 'dispatch',
    ttlMs: UPKEEP_TTL_MS,
    ...(backend.mayLead !== undefined && { mayLead: backend.mayLead }),
  })
  const upkeep = backend.upkeep?.({ isLeading: () => dispatcher.isLeading() }) ?? []
  if (upkeep.length > 0) services.push(dispatcher, ...upkeep)
  return {
    async start() {
      await leader.start()
      for (const service of services) await service.start()
    },
    async stop() {
      await Promise.all(services.map((service) => service.stop()))
      await leader.stop()
    },
  }
}
