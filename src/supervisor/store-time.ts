// The time of the store without asking it each time: read once, then carried on by the monotonic clock of this process.
// A wall clock that is wrong or jumps, here or on another host, is nowhere in it.
import type { Clock } from '../runtime/clock.ts'
import type { Backend } from '../store/ports.ts'

export interface StoreTime {
  nowMs(): number
}

export async function readStoreTime({ schedules }: Pick<Backend, 'schedules'>, clock: Clock): Promise<StoreTime> {
  const beforeMs = clock.monoMs()
  const { nowMs } = await schedules.due(0)
  const offsetMs = nowMs - (beforeMs + clock.monoMs()) / 2
  return { nowMs: () => Math.round(clock.monoMs() + offsetMs) }
}
