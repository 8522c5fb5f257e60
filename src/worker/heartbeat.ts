// Keeps the life of a worker: beats, trust, cancellations and commands that come back with a beat.
import { bounded } from '../runtime/bounded.ts'
import { createLoop } from '../runtime/service.ts'
import type { Loop, Service } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { controlTopic } from '../store/wakeups.ts'
import type { Wakeups } from '../store/wakeups.ts'
import type { BeatReply, BeatRequest, WorkerCommand } from '../store/worker-store.ts'
import type { LeaseRef, WorkerId } from '../core/job.ts'
import { Trust } from './trust.ts'

export interface HeartbeatOptions {
  readonly runtime: Runtime
  readonly worker: WorkerId
  readonly beat: (request: BeatRequest) => Promise<BeatReply>
  readonly wakeups: Wakeups
  readonly periodMs: number
  readonly ttlMs: number
  readonly marginMs: number
  readonly running: () => number
  readonly onCancels: (cancels: readonly LeaseRef[]) => void
  readonly onCommand: (command: WorkerCommand) => void
  /** This life is over: declared dead, or out of touch for too long. */
  readonly onLost: (reason: string) => void
}

export interface Heartbeat extends Service {
  isTrusted(): boolean
}

export function createHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { runtime, worker, periodMs, ttlMs, marginMs } = options
  let commandsSeen = 0
  let lost = false
  let stopListening: (() => void) | undefined

  function lose(reason: string): void {
    if (lost) return
    lost = true
    trust.end()
    options.onLost(reason)
  }

  const trust = new Trust({
    clock: runtime.clock,
    ttlMs,
    marginMs,
    onDoubt: () => loop.wake(),
    onLost: () => lose(`the store could not be reached for ${ttlMs} ms`),
  })

  async function pass(): Promise<number> {
    if (lost) return periodMs
    const startedMs = runtime.clock.monoMs()
    const request = { id: worker, running: options.running(), commandsSeen }
    // A beat that takes longer than the margin says too little about now to be worth waiting for.
    const reply = await bounded(runtime.clock, Math.max(marginMs, 100), 'the heartbeat', options.beat(request))
    if (!reply.alive) {
      lose('the worker was declared dead')
      return periodMs
    }
    trust.renew(startedMs)
    if (reply.cancels.length > 0) options.onCancels(reply.cancels)
    for (const { no, command } of reply.commands) {
      if (no <= commandsSeen) continue
      commandsSeen = no
      options.onCommand(command)
    }
    return periodMs
  }

  const loop: Loop = createLoop({ name: 'heartbeat', runtime, pass, backoffMinMs: 50, backoffMaxMs: 500 })

  return {
    async start() {
      // The first beat opens the trust window, so nothing is claimed before the store has answered once.
      await pass()
      stopListening = options.wakeups.listen([controlTopic(worker)], () => loop.wake())
      await loop.start()
    },
    async stop() {
      stopListening?.()
      trust.end()
      await loop.stop()
    },
    isTrusted: () => trust.isHeld(),
  }
}
