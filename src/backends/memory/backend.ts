// The memory backend: the core's reference semantics over plain data. Embedded test mode and executable
// specification of every other backend in one.
import { systemClock } from '../../runtime/clock.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Backend, Capabilities } from '../../store/ports.ts'
import { memoryBatches } from './batches.ts'
import { memoryHandOvers } from './hand-over.ts'
import { memoryJobs } from './jobs.ts'
import { memoryLimits } from './limits.ts'
import { memoryNotes } from './notes.ts'
import { memoryQuery } from './query.ts'
import { memoryQueues } from './queues.ts'
import { memorySchedules } from './schedules.ts'
import { memoryWakeups } from './wakeups.ts'
import { memoryWorkers } from './workers.ts'
import { World } from './world.ts'

export interface MemoryOptions {
  /** The clock of the store; the system's by default. */
  readonly clock?: Clock
}

const CAPABILITIES: Capabilities = {
  strictPriority: true,
  durable: false,
  transactional: false,
  atomicAcrossQueues: true,
  payloadSearch: true,
  orderedCalls: 1,
  orderedInserts: 1,
  settlesApart: 'never',
  threadLiveness: null,
}

export function memory(options: MemoryOptions = {}): Backend {
  return backendOver(new World(options.clock ?? systemClock))
}

/** For the simulator, which looks into the world it drives. */
export function backendOver(world: World): Backend {
  return {
    jobs: memoryJobs(world),
    query: memoryQuery(world),
    queues: memoryQueues(world),
    schedules: memorySchedules(world),
    batches: memoryBatches(world),
    limits: memoryLimits(world),
    workers: memoryWorkers(world),
    notes: memoryNotes(world),
    wakeups: memoryWakeups(world),
    handOvers: memoryHandOvers(world),
    capabilities: CAPABILITIES,
    start: () => Promise.resolve(world.open()),
    stop: () => Promise.resolve(world.close()),
  }
}
