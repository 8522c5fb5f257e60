// Supervisors with alerts, over one memory store and a clock that a test moves: what they tell is kept.
import { onTestFinished } from 'vitest'
import { createAlerting } from '../../src/alerts/alerting.ts'
import { createAlertNotes } from '../../src/alerts/alert-notes.ts'
import type { NotifyInput } from '../../src/alerts/notify-job.ts'
import { createNotifyJob, notifyOptions } from '../../src/alerts/notify-job.ts'
import { checkAlerts } from '../../src/alerts/options.ts'
import type { AlertOptions } from '../../src/alerts/options.ts'
import type { SentNotice } from '../../src/alerts/sinks/sink.ts'
import type { PoolFacts } from '../../src/core/alert-facts.ts'
import { createMillrace, memory } from '../../src/index.ts'
import type { AnyJob } from '../../src/index.ts'
import { jsonLogger } from '../../src/runtime/logger.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Service } from '../../src/runtime/service.ts'
import type { ServerState } from '../../src/store/diagnosis.ts'
import type { Backend } from '../../src/store/ports.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import { VirtualClock } from '../features/support.ts'

export interface AlertWorld {
  readonly clock: VirtualClock
  readonly backend: Backend
  readonly told: SentNotice[]
  readonly lines: string[]
  /** `firing depth:mail` of what a sink was told. */
  readonly words: () => readonly string[]
  readonly notes: ReturnType<typeof createAlertNotes>
  /** One more supervisor; `enqueue` stands before the real one. */
  supervisor(options?: SupervisorOptions): Promise<Supervisor>
}

export interface Supervisor extends Service {
  /** Its process is gone: nothing of it is heard of again. */
  kill(): void
}

export interface SupervisorOptions {
  readonly alerts?: AlertOptions
  readonly pools?: () => readonly PoolFacts[]
  readonly host?: string
  readonly backend?: Backend
  readonly jobs?: readonly AnyJob[]
  /** Whether it delivers notices itself. Default true. */
  readonly works?: boolean
  /** Promoter, scheduler, rescuer. Default true. */
  readonly maintenance?: boolean
  /** Throws, or never answers, in place of the real one. */
  readonly enqueue?: (input: NotifyInput, real: (input: NotifyInput) => Promise<unknown>) => Promise<unknown>
}

export function alertWorld(servers?: () => readonly ServerState[]): AlertWorld {
  const clock = new VirtualClock()
  const own = memory({ clock })
  const backend: Backend =
    servers === undefined ? own : Object.assign({ ...own }, { servers: () => Promise.resolve(servers()) })
  const told: SentNotice[] = []
  const lines: string[] = []
  let random = 0
  return {
    clock,
    backend,
    told,
    lines,
    words: () => told.map(({ kind, key }) => `${kind} ${key}`),
    notes: createAlertNotes(backend.notes),
    async supervisor({
      alerts = {},
      pools,
      host = 'host1',
      enqueue,
      jobs = [],
      maintenance = true,
      works = true,
      ...options
    } = {}) {
      let isGone = false
      const guarded = killable(options.backend ?? backend, () => isGone)
      const logger = jsonLogger('info', (line) => void lines.push(line))
      const runtime = createRuntime({ clock, logger, random: () => (random = (random + 0.37) % 1) })
      const sinks = alerts.sinks ?? { all: { type: 'custom', send: (notice) => void (isGone || told.push(notice)) } }
      const plan = checkAlerts({ ...alerts, sinks })
      const notify = createNotifyJob(plan, { runtime, notes: createAlertNotes(guarded.notes) })
      const mill = await createMillrace({ jobs: [notify, ...jobs], backend: guarded, runtime, logger, maintenance })
      if (works) await mill.work({ queues: ['millrace.alerts'], concurrency: 2 })
      const real = (input: NotifyInput) => mill.enqueue(notify, input, notifyOptions(input))
      const service = createAlerting({
        runtime,
        plan,
        connections: { default: guarded },
        host,
        enqueue: (input) => (enqueue === undefined ? real(input) : enqueue(input, real)),
        ...(pools !== undefined && { pools: () => Promise.resolve(pools()) }),
      })
      await service.start()
      const stop = async (): Promise<void> => {
        await service.stop()
        await mill.stop({ deadline: 0 })
      }
      onTestFinished(async () => {
        if (!isGone) await stop()
      })
      return { start: () => service.start(), stop, kill: () => void (isGone = true) }
    },
  }
}

/** A process that is gone gets no answers any more. */
function killable(backend: Backend, isGone: () => boolean): Backend {
  return wrapBackend(backend, (_, call) => (isGone() ? new Promise(() => undefined) : call()))
}
