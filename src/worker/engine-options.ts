// What the worker of one connection is made of.
import type { AnyJob, FailedHook, RunMiddleware, RunServices } from '../core/definition.ts'
import type { ClaimedJob } from '../core/job.ts'
import type { SystemPolicy } from '../core/policy.ts'
import type { EventHub } from '../runtime/events.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Tracing } from '../runtime/tracing.ts'
import type { Backend } from '../store/ports.ts'
import type { RunBounds } from './job-run.ts'
import type { LifeTimes } from './life.ts'
import type { Slots } from './slots.ts'

export interface EngineOptions extends SystemPolicy, RunBounds {
  readonly backend: Backend
  readonly connection: string
  readonly runtime: Runtime
  readonly events: EventHub
  readonly queues: readonly string[]
  readonly slots: Slots
  readonly definition: (name: string) => AnyJob | undefined
  readonly services: (claimed: ClaimedJob, isLive: () => boolean) => RunServices
  readonly middleware: readonly RunMiddleware[]
  readonly onFailed: FailedHook | undefined
  readonly probe?: Probe | undefined
  readonly tracing?: Tracing | undefined
  readonly host: { readonly name: string; readonly pid: number }
  readonly times: LifeTimes
  /** How long a stopping worker waits for its last settlements. */
  readonly flushTimeoutMs: number
  /** The store told this worker to stop. */
  readonly onStopCommand: () => void
}
