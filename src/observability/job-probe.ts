// The one who watches jobs for this process: counts, and tells the diagnostics channels that somebody listens to.
import type { ClaimedJob, WorkerId } from '../core/job.ts'
import { LANES } from '../core/priority.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Probe } from '../runtime/probe.ts'
import { CHANNELS } from './channels.ts'
import type { EndMessage, EnqueueMessage, StartMessage } from './channels.ts'
import type { JobMeter } from './job-meter.ts'

export interface ProbeParts {
  readonly clock: Clock
  /** Absent: nothing is counted. */
  readonly meter?: JobMeter | undefined
  /** Told of ends after they were counted. */
  readonly ended?: Probe['ended'] | undefined
}

export function createProbe({ clock, meter, ended: tellEnd }: ProbeParts): Probe {
  return {
    enqueued(job, id, isDuplicate) {
      const { queue, name } = job
      meter?.enqueued(queue, name, isDuplicate)
      if (CHANNELS.enqueue.hasSubscribers) {
        CHANNELS.enqueue.publish({ id, name, queue, duplicate: isDuplicate } satisfies EnqueueMessage)
      }
    },
    started(claimed, lane, worker) {
      meter?.started(claimed, lane, clock.nowMs())
      if (CHANNELS.start.hasSubscribers) {
        const { id, name, queue, attemptCount } = claimed
        const message: StartMessage = { id, name, queue, worker, attempt: attemptCount + 1, lane: LANES[lane] }
        CHANNELS.start.publish(message)
      }
    },
    ended(claimed, settled, worker) {
      meter?.ended(claimed, settled, clock.nowMs())
      tellEnd?.(claimed, settled, worker)
      if (CHANNELS.end.hasSubscribers) CHANNELS.end.publish(endMessage(claimed, settled, worker))
    },
    refused(claimed, transition, verdict, worker) {
      meter?.stale(claimed.queue, claimed.name)
      if (CHANNELS.stale.hasSubscribers) CHANNELS.stale.publish(endMessage(claimed, transition, worker, verdict))
    },
    ...(meter !== undefined && { cancelled: ({ queue, name }) => meter.cancelled(queue, name) }),
    rescued(job, transition) {
      meter?.rescued(job.queue, job.name, transition)
      if (CHANNELS.rescue.hasSubscribers) CHANNELS.rescue.publish(endMessage(job, transition, job.worker))
    },
  }
}

function endMessage(
  { id, name, queue, attemptCount }: Pick<ClaimedJob, 'id' | 'name' | 'queue' | 'attemptCount'>,
  { edge, ranMs = 0, error }: Transition,
  worker: WorkerId | null,
  verdict?: Verdict,
): EndMessage {
  return {
    id,
    name,
    queue,
    worker,
    attempt: attemptCount + 1,
    edge,
    ranMs,
    ...(error !== undefined && { error }),
    ...(verdict !== undefined && { verdict }),
  }
}
