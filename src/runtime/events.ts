// Typed events of one process: what its own client and workers did. A listener that throws is reported
// and never disturbs the one who emits.
import type { AttemptError } from '../core/attempt-error.ts'
import type { BatchId, JobId, WorkerId } from '../core/job.ts'
import { invalidOption } from '../core/names.ts'
import type { Logger } from './logger.ts'

export interface JobEvent {
  readonly id: JobId
  readonly name: string
  readonly queue: string
}

export interface RunEvent extends JobEvent {
  readonly worker: WorkerId
  /** 1 for the first run. */
  readonly attempt: number
}

export interface EndedEvent extends RunEvent {
  readonly ranMs: number
}

export interface Events {
  enqueued: JobEvent & { readonly duplicate: boolean; readonly batch: BatchId | null }
  started: RunEvent
  completed: EndedEvent
  retried: EndedEvent & { readonly error: AttemptError; readonly delayMs: number }
  /** It became a dead letter. Without a worker: a parent failed, or its worker was lost. */
  failed: Omit<EndedEvent, 'worker'> & { readonly worker: WorkerId | null; readonly error: AttemptError }
  cancelled: EndedEvent
  released: EndedEvent & { readonly reason: string }
  /** A result came too late: the run no longer owned the job. */
  stale: RunEvent & { readonly edge: string; readonly verdict: string }
  expired: JobEvent & { readonly worker: WorkerId | null; readonly forGood: boolean }
  progress: RunEvent & { readonly progress: string }
  workerStarted: { readonly worker: WorkerId }
  workerStopped: { readonly worker: WorkerId }
  workerLost: { readonly worker: WorkerId; readonly reason: string }
}

export type EventName = keyof Events

export const EVENT_NAMES = [
  'enqueued',
  'started',
  'completed',
  'retried',
  'failed',
  'cancelled',
  'released',
  'stale',
  'expired',
  'progress',
  'workerStarted',
  'workerStopped',
  'workerLost',
] as const satisfies readonly EventName[]
export type Listener<Name extends EventName> = (event: Events[Name]) => void

export interface EventHub {
  /** Answers the way to stop listening. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void
  emit<Name extends EventName>(name: Name, event: Events[Name]): void
  /** So that nobody builds an event that nobody wants. */
  has(name: EventName): boolean
}

export function createEventHub(logger: Logger): EventHub {
  // One array per name, replaced on change, so that emitting iterates a stable list without a copy.
  const listeners = new Map<EventName, readonly Listener<EventName>[]>()
  return {
    on(name, listener) {
      if (!EVENT_NAMES.includes(name)) throw invalidOption('event', name, `one of ${EVENT_NAMES.join(', ')}`)
      if (typeof listener !== 'function') throw invalidOption('listener', listener, 'a function')
      // The map forgets which name a listener belongs to; `emit` only ever passes it events of that name.
      const erased = listener as Listener<EventName>
      listeners.set(name, [...(listeners.get(name) ?? []), erased])
      return () => {
        const left = (listeners.get(name) ?? []).filter((other) => other !== erased)
        if (left.length === 0) listeners.delete(name)
        else listeners.set(name, left)
      }
    },
    emit(name, event) {
      const list = listeners.get(name)
      if (list === undefined) return
      for (const listener of list) {
        try {
          listener(event)
        } catch (error) {
          logger.error({ event: name, error }, `a listener of '${name}' threw`)
        }
      }
    },
    has: (name) => listeners.has(name),
  }
}
