// Notifications that failed for good are sent again, a few times and some minutes apart: the other side may be back. When,
// is decided in core/notification-retry.ts; a replay is guarded by the failure that was seen, so no two send one twice.
import { ALERT_QUEUE, NOTIFY_JOB } from '../core/alert-rules.ts'
import { replaySame } from '../client/replay.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import type { StoredJob } from '../core/job.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkName } from '../core/names.ts'
import { decideNotification } from '../core/notification-retry.ts'
import type { NotificationTerms, NotificationVerdict } from '../core/notification-retry.ts'
import { begin, checkCommon, overTime } from './task.ts'
import type { CommonOptions, TaskContext, TaskResult } from './task.ts'

export interface NotificationsTaskOptions extends CommonOptions {
  /** How often one is sent again. Default 3. */
  readonly retries?: number
  /** Between its failure and the next try. Default 300 s. */
  readonly delay?: Duration
  /** Older ones are old news. Default 1 day. */
  readonly newerThan?: Duration
  /** Where they are. Default those of alerts: `millrace.alerts` and `millrace.notify`. */
  readonly queue?: string
  readonly kind?: string
}

const ACTOR = 'millrace.task.notifications'
const OPTIONS = ['retries', 'delay', 'newerThan', 'queue', 'kind'] as const
const NAMES: Readonly<Record<NotificationVerdict, string>> = {
  replay: 'replayed',
  wait: 'waiting',
  'given-up': 'givenUp',
  'too-old': 'tooOld',
}

export async function retryNotifications(
  context: TaskContext,
  options: NotificationsTaskOptions = {},
): Promise<TaskResult> {
  const { terms, queue, name } = checkNotificationsTask(options)
  const course = begin(context, options)
  const { backend, runtime } = context
  const { nowMs } = await backend.schedules.due(0)
  const filter = { queue, name, status: ['failed'], enqueuedFromMs: nowMs - terms.ageMs } as const
  const counts: Record<string, number> = { failed: 0, replayed: 0, waiting: 0, givenUp: 0, tooOld: 0 }
  const add = (key: string, more = 1): void => void (counts[key] = (counts[key] ?? 0) + more)
  let cursor: string | undefined
  let isOver = false
  while (!isOver && (counts['failed'] ?? 0) < LIMITS.notificationsMax && course.mayGoOn()) {
    const page = { limit: LIMITS.pageSizeMax, isFresh: true, ...(cursor !== undefined && { cursor }) }
    const { items, nextCursor } = await backend.query.list(filter, page)
    const due: StoredJob[] = []
    for (const job of items) {
      const verdict = await judge(context, job, nowMs, terms)
      add('failed')
      if (verdict === 'replay') due.push(job)
      else add(NAMES[verdict])
    }
    if (course.dryRun) add('replayed', due.length)
    else {
      const verdicts = await replaySame(backend, runtime, due, ACTOR)
      add('replayed', verdicts.filter((verdict) => verdict === 'applied' || verdict === 'already').length)
    }
    cursor = nextCursor
    isOver = cursor === undefined
  }
  return course.finish({
    summary: `${counts['replayed']} of ${counts['failed']} failed notifications are sent again`,
    counts,
    left: isOver ? null : overTime(course),
    warnings: (counts['givenUp'] ?? 0) === 0 ? [] : [`${counts['givenUp']} notifications failed every time`],
  })
}

async function judge({ backend }: TaskContext, job: StoredJob, nowMs: number, terms: NotificationTerms) {
  // One that was never sent again needs no look at its history.
  const rows = job.replayedAtMs === null ? [] : await backend.query.attempts(job.id)
  const replays = rows.filter(({ status }) => status === 'replayed').length
  const { enqueuedAtMs, finishedAtMs, updatedAtMs } = job
  return decideNotification({ enqueuedAtMs, failedAtMs: finishedAtMs ?? updatedAtMs, replays }, nowMs, terms)
}

export function checkNotificationsTask(options: NotificationsTaskOptions) {
  checkCommon(options, OPTIONS, 'task notifications')
  const { retries, delay, newerThan, queue, kind } = options
  const terms: NotificationTerms = {
    retries: checkInteger(retries ?? DEFAULTS.notificationRetries, 'retries', 0, LIMITS.attemptsMax),
    delayMs: parseDuration(delay ?? DEFAULTS.notificationRetryMs, 'delay'),
    ageMs: parseDuration(newerThan ?? DEFAULTS.notificationAgeMs, 'newerThan'),
  }
  return { terms, queue: checkName(queue ?? ALERT_QUEUE, 'queue'), name: checkName(kind ?? NOTIFY_JOB, 'job') }
}
