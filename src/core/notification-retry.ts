// When a notification that failed for good is sent once more: a few times, some minutes apart, and not when it is old news.

export interface FailedNotification {
  readonly enqueuedAtMs: number
  readonly failedAtMs: number
  /** How often it was sent again. */
  readonly replays: number
}

export interface NotificationTerms {
  readonly retries: number
  readonly delayMs: number
  readonly ageMs: number
}

export type NotificationVerdict = 'replay' | 'wait' | 'given-up' | 'too-old'

export function decideNotification(
  { enqueuedAtMs, failedAtMs, replays }: FailedNotification,
  nowMs: number,
  { retries, delayMs, ageMs }: NotificationTerms,
): NotificationVerdict {
  if (enqueuedAtMs < nowMs - ageMs) return 'too-old'
  if (replays >= retries) return 'given-up'
  return failedAtMs > nowMs - delayMs ? 'wait' : 'replay'
}
