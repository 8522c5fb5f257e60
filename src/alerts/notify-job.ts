// The delivery of a notice as a job of our own: `millrace.notify` in the queue `millrace.alerts`. It names its sink; where
// that is, and how one gets in there, is in the configuration of the process that runs it.
//
// Notices about one alert to one sink are one group, so that they arrive in order: a page that is tried again after the
// one that resolves it would ring for ever.
import { defineJob } from '../client/define-job.ts'
import { readField } from '../core/classify.ts'
import type { Verdict } from '../core/classify.ts'
import type { JobDefinition, RunContext } from '../core/definition.ts'
import { isMillraceError, MillraceError } from '../core/errors.ts'
import type { Notice } from '../core/alerting.ts'
import { ALERT_QUEUE, NOTIFY_JOB } from '../core/alert-rules.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { fixed } from '../core/retry.ts'
import { shortKey } from '../core/short-text.ts'
import { logEntryOf } from './alert-notes.ts'
import type { AlertNotes } from './alert-notes.ts'
import type { AlertPlan } from './options.ts'
import { createPost } from './post.ts'
import type { Post } from './post.ts'
import type { SinkParts } from './sink-options.ts'

export interface NotifyInput {
  readonly sink: string
  readonly notice: Notice
}

export type NotifyJob = JobDefinition<typeof NOTIFY_JOB, NotifyInput, NotifyInput, { readonly reply: string }>

const RUN_MAX_MS = 3 * 60_000
/** The same notice is not enqueued twice within this time: a leader died between sending it and saying so. */
const UNIQUE_MS = 60 * 60_000
const PRIORITIES = { critical: 'critical', warning: 'high', info: 'normal' } as const

export interface NotifyParts extends SinkParts {
  /** Writes down what could not be delivered, for `millrace alerts ls --all`; best effort. */
  readonly notes?: Pick<AlertNotes, 'record'>
}

export function createNotifyJob(plan: AlertPlan, parts: NotifyParts): NotifyJob {
  const post = createPost(plan, parts)
  return defineJob({
    name: NOTIFY_JOB,
    queue: ALERT_QUEUE,
    retry: fixed({ attempts: DEFAULTS.noticeAttempts, delay: DEFAULTS.noticeRetryMs }),
    timeout: RUN_MAX_MS,
    unique: {
      by: ({ sink, notice }: NotifyInput) => shortKey(`${sink} ${notice.incident}#${notice.no}`, LIMITS.keyCharsMax),
      mode: 'for-a-time',
      window: UNIQUE_MS,
    },
    group: ({ sink, notice }: NotifyInput) => shortKey(`${sink} ${notice.key}`, LIMITS.keyCharsMax),
    classify: verdictOf,
    run: async (context: RunContext<NotifyInput>) => ({ reply: await deliver(post, context, parts) }),
  })
}

/** What a caller of `enqueue` says besides the input. */
export function notifyOptions({ notice }: NotifyInput) {
  return { priority: PRIORITIES[notice.severity] }
}

async function deliver(
  post: Post,
  { input, willRetry }: RunContext<NotifyInput>,
  { runtime, notes }: NotifyParts,
): Promise<string> {
  const sink: unknown = readField(input, 'sink')
  if (typeof sink !== 'string' || typeof readField(readField(input, 'notice'), 'incident') !== 'string') {
    throw new MillraceError('NOTICE_REFUSED', 'this is no notice of an alert')
  }
  try {
    return await post.send(sink, input.notice)
  } catch (error) {
    const message = messageOf(error)
    const isOver = !willRetry || verdictOf(error)?.retry === 'never'
    const facts = { sink, incident: input.notice.incident, error: message }
    runtime.logger[isOver ? 'error' : 'warn'](facts, `a notice was not delivered${isOver ? ', and is given up' : ''}`)
    const entry = { ...logEntryOf(input.notice), atMs: runtime.clock.nowMs(), undelivered: { sink, error: message } }
    // What went wrong first is what is to be told.
    if (isOver) await notes?.record(entry).catch(() => undefined)
    throw error
  }
}

function verdictOf(error: unknown): Partial<Verdict> | undefined {
  if (!isMillraceError(error)) return undefined
  if (error.code === 'NOTICE_REFUSED' || error.code === 'MAILER_MISSING') return { class: 'permanent', retry: 'never' }
  if (error.code !== 'NOTICE_NOT_DELIVERED') return undefined
  const { status, retryAfterMs } = error.details
  if (typeof retryAfterMs === 'number') return { class: 'rate-limited', retry: { afterMs: retryAfterMs } }
  return { class: status === undefined ? 'network' : 'server', retry: 'policy' }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
