// A hybrid over the ledger and the race in memory, with a clock that a test moves.
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import type { TestStore } from '../conformance/suite.ts'
import { stepBackend } from './step-backend.ts'

export async function createModelStore(isFast = false): Promise<TestStore> {
  const clock = new ManualClock()
  const world = new World(clock)
  const runtime = createRuntime()
  const backend = stepBackend({
    isFast,
    runtime,
    store: backendOver(world),
    ledger: memoryLedger(world, new LedgerState()),
    race: new MemoryRace(),
    times: { ...HYBRID_TIMES, watchMs: 2 },
    threadMonoMs: () => runtime.clock.monoMs(),
  })
  await backend.start()
  return { backend, clock, close: () => backend.stop() }
}
