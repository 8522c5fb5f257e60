// Keeps the life of a worker: beats, trust, cancellations and commands that come back with a beat. The
// beats come from a loop in this thread, or from a thread of their own where the store can be reached from
// one, so that a handler that blocks the loop does not lose its jobs.
import { MillraceError } from '../core/errors.ts'
import type { LeaseRef, WorkerId } from '../core/job.ts'
import { bounded } from '../runtime/bounded.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { startBeatThread } from '../runtime/thread.ts'
import type { ThreadLiveness } from '../store/ports.ts'
import { controlTopic } from '../store/wakeups.ts'
import type { Wakeups } from '../store/wakeups.ts'
import type { BeatReply, BeatRequest, WorkerCommand } from '../store/worker-store.ts'
import { Trust } from './trust.ts'

export interface HeartbeatOptions {
  readonly runtime: Runtime
  readonly worker: WorkerId
  readonly beat: (request: BeatRequest) => Promise<BeatReply>
  /** Where the thread finds its own way to the store; null: beats come from the loop. */
  readonly thread: ThreadLiveness | null
  readonly wakeups: Wakeups
  readonly periodMs: number
  readonly ttlMs: number
  readonly marginMs: number
  readonly running: () => number
  readonly onCancels: (cancels: readonly LeaseRef[]) => void
  /** These runs belong to somebody else by now. */
  readonly onLeasesLost: (lost: readonly LeaseRef[]) => void
  readonly onCommand: (command: WorkerCommand) => void
  /** The trust window opened, for the first time or again. */
  readonly onTrusted: () => void
  /** This life is over: declared dead, or out of touch for too long. */
  readonly onLost: (reason: string) => void
}

export interface Heartbeat extends Service {
  isTrusted(): boolean
}

export function createHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { runtime, worker, ttlMs, marginMs } = options
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
    onDoubt: () => source.now(),
    onLost: () => lose(`the store could not be reached for ${ttlMs} ms`),
  })

  function take(reply: BeatReply, startedMs: number): void {
    if (lost) return
    if (!reply.alive) {
      lose('the worker was declared dead')
      return
    }
    const wasTrusted = trust.isHeld()
    trust.renew(startedMs)
    if (!wasTrusted && trust.isHeld()) options.onTrusted()
    if (reply.lost !== undefined) options.onLeasesLost(reply.lost)
    if (reply.cancels.length > 0) options.onCancels(reply.cancels)
    for (const { no, command } of reply.commands) {
      if (no <= commandsSeen) continue
      commandsSeen = no
      options.onCommand(command)
    }
  }

  async function beatHere(): Promise<void> {
    const startedMs = runtime.clock.monoMs()
    const request = { id: worker, running: options.running(), commandsSeen }
    // A beat that takes longer than the margin says too little about now to be worth waiting for.
    const reply = await bounded(runtime.clock, Math.max(marginMs, 100), 'the heartbeat', options.beat(request))
    take(reply, startedMs)
  }

  function refuseIfLost(): void {
    if (lost) throw new MillraceError('LEASE_LOST', `worker ${worker} was lost before it had begun to work`)
  }

  const state = (): BeatState => ({ running: options.running(), commandsSeen })
  const source =
    options.thread === null
      ? loopSource(options, beatHere)
      : threadSource(options, options.thread, state, take, beatHere)

  return {
    async start() {
      // The first beat opens the trust window, so nothing is claimed before the store has answered once.
      await beatHere()
      refuseIfLost()
      stopListening = options.wakeups.listen([controlTopic(worker)], () => source.now())
      await source.start()
      if (lost) await source.stop()
      refuseIfLost()
    },
    async stop() {
      // A reply that is still on its way is about a life that is over.
      lost = true
      stopListening?.()
      trust.end()
      await source.stop()
    },
    isTrusted: () => trust.isHeld(),
  }
}

interface BeatState {
  readonly running: number
  readonly commandsSeen: number
}

interface BeatSource extends Service {
  /** Beat now rather than at the next turn. */
  now(): void
}

function loopSource({ runtime, periodMs }: HeartbeatOptions, beatHere: () => Promise<void>): BeatSource {
  const pass = async (): Promise<number> => {
    await beatHere()
    return periodMs
  }
  // A process that works stays up until it is told to stop.
  const loop = createLoop({ name: 'heartbeat', runtime, pass, backoffMinMs: 50, backoffMaxMs: 500, keepAlive: true })
  return { start: () => loop.start(), stop: () => loop.stop(), now: () => loop.wake() }
}

function threadSource(
  options: HeartbeatOptions,
  liveness: ThreadLiveness,
  state: () => BeatState,
  take: (reply: BeatReply, startedMs: number) => void,
  beatHere: () => Promise<void>,
): BeatSource {
  const { runtime, periodMs, marginMs, worker } = options
  const fallback = loopSource(options, beatHere)
  let thread: ReturnType<typeof startBeatThread> | undefined
  let isStopped = false
  let hasSpoken = false
  let stopWaiting: (() => void) | undefined

  /** Ready is when the thread has beaten once, or when it is known that it will not. */
  const begin = (onReady: () => void): void => {
    const { module, options: threadOptions } = liveness.ofLife?.(worker) ?? liveness
    thread = startBeatThread(
      { module, options: threadOptions, worker, periodMs, timeoutMs: Math.max(marginMs, 100) },
      {
        onMessage(message, ageMs) {
          hasSpoken = true
          if (message.kind === 'failed') runtime.logger.warn({ worker, error: message.message }, 'a heartbeat failed')
          else {
            const reply = message.reply as BeatReply // passed through by our own thread
            liveness.onReply?.(worker, reply)
            take(reply, runtime.clock.monoMs() - ageMs)
          }
          thread?.send({ kind: 'state', ...state() })
          onReady()
        },
        onExit(error) {
          thread = undefined
          runtime.logger.error({ worker, error }, 'the heartbeat thread ended; beats now come from the main loop')
          void fallback.start()
          onReady()
        },
      },
    )
  }

  return {
    async start() {
      const ready = new Promise<void>((resolve) => {
        stopWaiting = resolve
        begin(resolve)
      })
      // Nobody waits for it: it takes longer to load than many jobs to run, and the first beat is good for a whole ttl. One
      // that takes half of that to say a word is of no use: the loop beats meanwhile and on.
      void bounded(runtime.clock, options.ttlMs / 2, 'the heartbeat thread', ready).catch(async (error: unknown) => {
        // One turn of the loop first: after a blocked one its word may be waiting to be delivered.
        await runtime.clock.breathe()
        if (isStopped || hasSpoken) return
        runtime.logger.error({ worker, error }, 'the heartbeat thread did not start; beats come from the main loop')
        void fallback.start()
        const silent = thread
        thread = undefined
        void silent?.stop()
      })
    },
    async stop() {
      isStopped = true
      stopWaiting?.()
      liveness.onEnd?.(worker)
      await thread?.stop()
      await fallback.stop()
    },
    now() {
      if (thread === undefined) fallback.now()
      else thread.send({ kind: 'now' })
    },
  }
}
