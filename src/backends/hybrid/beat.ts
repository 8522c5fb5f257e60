// What the heartbeat thread of a session loads: beats, marks and adoptions over a connection of its own, so that a handler
// that blocks the main loop keeps its jobs and holds up nobody's barrier.
import type { WorkerId } from '../../core/job.ts'
import { systemClock } from '../../runtime/clock.ts'
import { threadsMonoMs } from '../../runtime/thread.ts'
import type { BeatRequest } from '../../store/worker-store.ts'
import type { BeatOptions } from '../postgres/beat.ts'
import { createSessionLedger } from '../postgres/session-ledger.ts'
import type { SharedInFlight } from './in-flight.ts'
import { Keeper } from './keeper.ts'
import type { KeeperReply } from './keeper.ts'

export interface HybridBeatOptions {
  readonly session: BeatOptions
  readonly worker: WorkerId
  readonly inFlight: SharedInFlight
  readonly markAfterMs: number
  readonly markEveryMs: number
}

export async function createBeat(options: HybridBeatOptions): Promise<{
  beat(request: BeatRequest): Promise<KeeperReply>
  onUrgent(beatNow: () => void): void
  close(): Promise<void>
}> {
  const { session, worker, inFlight, markAfterMs, markEveryMs } = options
  const ledger = await createSessionLedger(session)
  let beatNow = (): void => undefined
  const keeper = new Keeper({
    ledger,
    worker,
    inFlight,
    monoMs: threadsMonoMs,
    timer: (delayMs, fire) => systemClock.timer(delayMs, fire),
    markAfterMs,
    markEveryMs,
    onLost: () => beatNow(),
  })
  keeper.start()
  return {
    beat: (request) => keeper.beat(request),
    onUrgent(urgent) {
      beatNow = urgent
    },
    async close() {
      keeper.rest()
      await ledger.close()
    },
  }
}
