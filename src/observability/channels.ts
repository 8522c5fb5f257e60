// The diagnostics channels of Millrace: what happens to jobs, for tools that look from outside. A message is made only
// when somebody has subscribed.
import { channel } from 'node:diagnostics_channel'
import type { AttemptError } from '../core/attempt-error.ts'
import type { EdgeName } from '../core/edges.ts'
import type { JobId, WorkerId } from '../core/job.ts'
import type { Verdict } from '../core/transition.ts'

export interface EnqueueMessage {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly duplicate: boolean
}

export interface StartMessage {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly worker: WorkerId
  /** 1 for the first run. */
  readonly attempt: number
  readonly lane: 'high' | 'normal' | 'low'
}

export interface EndMessage {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  /** Null: it has none any more. */
  readonly worker: WorkerId | null
  readonly attempt: number
  /** The edge of docs/state-machine.md: complete, retry, fail, snooze, release, cancelRunning, expire … */
  readonly edge: EdgeName
  readonly ranMs: number
  readonly error?: AttemptError
  /** With `millrace:stale`: what the store said. */
  readonly verdict?: Verdict
}

export const CHANNEL_NAMES = {
  'millrace:enqueue': 'a job was put into a store, or was already there',
  'millrace:start': 'a handler is about to be called',
  'millrace:end': 'the store has applied the end of a run',
  'millrace:stale': 'the end of a run was refused: the job was no longer its own',
  'millrace:rescue': 'maintenance has ended a run whose worker was lost, or a job that can never run',
} as const

export const CHANNELS = {
  enqueue: channel('millrace:enqueue'),
  start: channel('millrace:start'),
  end: channel('millrace:end'),
  stale: channel('millrace:stale'),
  rescue: channel('millrace:rescue'),
} as const
