// The lives of a worker. A life has an id, a heartbeat and a count of claims; when it is lost the next one
// begins with a new id, so that nothing of the old one can be mistaken for it.
import type { LeaseRef, WorkerId } from '../core/job.ts'
import { bounded } from '../runtime/bounded.ts'
import { createLoop } from '../runtime/service.ts'
import type { Loop } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import type { NewWorker, WorkerCommand } from '../store/worker-store.ts'
import { createHeartbeat } from './heartbeat.ts'
import type { Heartbeat } from './heartbeat.ts'

export interface LifeTimes {
  readonly heartbeatMs: number
  readonly ttlMs: number
  readonly marginMs: number
  readonly abortGraceMs: number
}

export interface LifeOptions {
  readonly runtime: Runtime
  readonly backend: Backend
  readonly times: LifeTimes
  readonly worker: Omit<NewWorker, 'id'>
  readonly running: () => number
  readonly onCancels: (cancels: readonly LeaseRef[]) => void
  readonly onLeasesLost: (lost: readonly LeaseRef[]) => void
  readonly onCommand: (command: WorkerCommand) => void
  readonly onLost: (id: WorkerId, reason: string) => void
  readonly onTrusted: () => void
}

export class Life {
  readonly #options: LifeOptions
  #id: WorkerId
  #claimNo = 0
  #heartbeat: Heartbeat | undefined
  #rebirth: Loop | undefined
  #stopped = false

  constructor(options: LifeOptions) {
    this.#options = options
    this.#id = options.runtime.newId() as WorkerId // minted here
  }

  get id(): WorkerId {
    return this.#id
  }

  /** Null between two lives. */
  get current(): WorkerId | null {
    return this.#heartbeat === undefined ? null : this.#id
  }

  isCurrent(worker: WorkerId): boolean {
    return this.#heartbeat !== undefined && this.#id === worker
  }

  nextClaimNo(): number {
    this.#claimNo += 1
    return this.#claimNo
  }

  isTrusted(): boolean {
    return this.#heartbeat?.isTrusted() ?? false
  }

  async start(): Promise<void> {
    await this.#begin()
  }

  /** Ends the life with this id, if it is the current one. */
  lose(id: WorkerId, reason: string): void {
    const heartbeat = this.#heartbeat
    if (heartbeat === undefined || id !== this.#id) return
    this.#heartbeat = undefined
    this.#options.onLost(this.#id, reason)
    void heartbeat.stop()
    if (!this.#stopped) this.#beginAgain()
  }

  async stop(): Promise<void> {
    const { backend, runtime, times } = this.#options
    this.#stopped = true
    await this.#rebirth?.stop()
    const heartbeat = this.#heartbeat
    this.#heartbeat = undefined
    if (heartbeat === undefined) return
    await heartbeat.stop()
    // Best effort: a life that is not retired is declared dead a ttl later.
    const signOff = bounded(runtime.clock, times.marginMs, 'signing off', backend.workers.retire(this.#id))
    await signOff.catch((error: unknown) => {
      runtime.logger.warn({ worker: this.#id, error }, 'the worker could not sign off')
    })
  }

  async #begin(): Promise<void> {
    const { backend, runtime, times } = this.#options
    const id = this.#id
    await backend.workers.register({ id, ...this.#options.worker })
    const heartbeat = createHeartbeat({
      runtime,
      worker: id,
      beat: (request) => backend.workers.beat(request),
      thread: backend.capabilities.threadLiveness,
      wakeups: backend.wakeups,
      periodMs: times.heartbeatMs,
      ttlMs: times.ttlMs,
      marginMs: times.marginMs,
      running: this.#options.running,
      onCancels: this.#options.onCancels,
      onLeasesLost: this.#options.onLeasesLost,
      onCommand: this.#options.onCommand,
      onTrusted: () => this.#options.onTrusted(),
      onLost: (reason) => this.lose(id, reason),
    })
    await heartbeat.start()
    // Kept also when it was stopped meanwhile: whoever stops it signs it off.
    this.#heartbeat = heartbeat
    if (!this.#stopped) this.#options.onTrusted()
  }

  #beginAgain(): void {
    void this.#rebirth?.stop()
    const rebirth = createLoop({
      name: 'new worker life',
      runtime: this.#options.runtime,
      pass: async () => {
        // Every try is a life of its own: the one before may have been declared dead while it waited.
        this.#id = this.#options.runtime.newId() as WorkerId // minted here
        this.#claimNo = 0
        await this.#begin()
        void rebirth.stop()
        return 0
      },
      backoffMaxMs: 2_000,
    })
    this.#rebirth = rebirth
    void rebirth.start()
  }
}
