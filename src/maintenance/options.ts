// What every maintenance service is given.
import type { FailedInfo } from '../core/definition.ts'
import type { RetryPolicy } from '../core/retry.ts'
import type { EventHub } from '../runtime/events.ts'
import type { Probe } from '../runtime/probe.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Service } from '../runtime/service.ts'
import type { Backend } from '../store/ports.ts'
import type { RetentionPeriods } from './retention-options.ts'

export interface MaintenanceOptions {
  readonly runtime: Runtime
  readonly backend: Backend
  readonly connection: string
  readonly events: EventHub
  readonly periodMs: number
  readonly workerTtlMs: number
  readonly leaderTtlMs: number
  /** Of queues that have none of their own; absent: the defaults. */
  readonly retention?: RetentionPeriods
  /** The policy of a job kind, if this process knows the kind and it has one. */
  readonly retryOf: (name: string) => RetryPolicy | undefined
  readonly onFailed: (failed: FailedInfo) => void
  readonly probe?: Probe | undefined
  /** Services of others that want the same leader. */
  readonly beside?: ((isLeading: () => boolean) => readonly Service[]) | undefined
}
