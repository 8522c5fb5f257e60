// The events of a run that is under way; what follows its end is src/runtime/verdicts.ts.
import type { JsonText } from '../core/json.ts'
import type { EventHub } from '../runtime/events.ts'
import type { JobRun } from './job-run.ts'

export function tellStarted({ claimed, worker }: JobRun, events: EventHub): void {
  if (!events.has('started')) return
  const { id, name, queue, attemptCount } = claimed
  events.emit('started', { id, name, queue, worker, attempt: attemptCount + 1 })
}

export function tellProgress({ claimed, worker }: JobRun, progress: JsonText, events: EventHub): void {
  const { id, name, queue, attemptCount } = claimed
  events.emit('progress', { id, name, queue, worker, attempt: attemptCount + 1, progress })
}
