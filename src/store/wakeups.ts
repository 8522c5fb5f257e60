// Hints, nothing more: every one may be lost, late or doubled, and a poll always stands behind it.
// The store rings by itself after a write took effect.
import type { BatchId, JobId, WorkerId } from '../core/job.ts'

export type Topic = `ready:${string}` | `finished:${string}` | `control:${string}` | 'config' | 'scheduled'

export interface Wakeups {
  /** Answers the way to stop listening. */
  listen(topics: readonly Topic[], onHint: (topic: Topic) => void): () => void
}

/** A job of this queue became ready. */
export const readyTopic = (queue: string): Topic => `ready:${queue}`
/** This job reached a final status, or this batch is finished. */
export const finishedTopic = (id: JobId | BatchId): Topic => `finished:${id}`
/** A command or a cancellation waits for this worker. */
export const controlTopic = (id: WorkerId): Topic => `control:${id}`
/** A queue was configured, paused or resumed. */
export const CONFIG_TOPIC: Topic = 'config'
/** A job was scheduled; the promoter may have to wake earlier. */
export const SCHEDULED_TOPIC: Topic = 'scheduled'
