// What a supervisor tells those who listen: alerts, metrics, tests.
import type { Logger } from '../runtime/logger.ts'
import type { ChildStatus } from './fleet.ts'

export interface SupervisorEvents {
  ready: { readonly pool: string; readonly child: string; readonly pid: number | null }
  /** With the last metrics it sent: whoever adds them up keeps them. */
  exited: {
    readonly child: ChildStatus
    readonly code: number | null
    readonly signal: string | null
    readonly reason: string | null
    readonly metrics: unknown
  }
  /** Once, when a pool enters it. */
  'crash-loop': {
    readonly pool: string
    readonly child: string
    readonly shortLives: number
    readonly code: number | null
  }
  'crash-loop-over': { readonly pool: string }
  unhealthy: { readonly pool: string; readonly child: string; readonly silentMs: number }
  recycled: { readonly pool: string; readonly child: string; readonly reason: string }
  scaled: { readonly pool: string; readonly from: number; readonly to: number; readonly reason: string }
  command: {
    readonly id: string
    readonly kind: string
    readonly by: string
    readonly outcome: 'done' | 'failed' | 'refused'
    readonly reason: string
  }
}

export type SupervisorEventName = keyof SupervisorEvents
export type SupervisorListener<Name extends SupervisorEventName> = (event: SupervisorEvents[Name]) => void

export class SupervisorHub {
  readonly #logger: Logger
  readonly #listeners = new Map<SupervisorEventName, Set<SupervisorListener<SupervisorEventName>>>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Answers the way to stop listening. */
  on<Name extends SupervisorEventName>(name: Name, listener: SupervisorListener<Name>): () => void {
    // The map forgets which name a listener belongs to; `emit` only ever passes it events of that name.
    const erased = listener as SupervisorListener<SupervisorEventName>
    let own = this.#listeners.get(name)
    if (own === undefined) this.#listeners.set(name, (own = new Set()))
    own.add(erased)
    return () => void this.#listeners.get(name)?.delete(erased)
  }

  emit<Name extends SupervisorEventName>(name: Name, event: SupervisorEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        listener(event)
      } catch (error) {
        this.#logger.error({ event: name, error }, `a listener of '${name}' threw`)
      }
    }
  }
}
