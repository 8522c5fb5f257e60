// What a sink is: it takes one notice to one place, and says by its error whether another try could help. Its secrets stay
// with it: a job, a note or a log line names a sink by its configured name.
import { MillraceError } from '../../core/errors.ts'
import type { Notice } from '../../core/alerting.ts'
import { formatDuration } from '../../core/duration.ts'
import { withoutPasswords } from '../../core/secrets.ts'

/** What leaves the house: a notice, and whose it is. */
export interface SentNotice extends Notice {
  /** The `system` of the configuration. */
  readonly system: string
  /** At least once: a receiver that has seen it may drop a second one. */
  readonly dedupeKey: string
}

export interface Sink {
  /** Ends within its time-out. Answers what the other side said, for people. */
  send(notice: SentNotice): Promise<string>
}

export interface DeliveryFailure {
  /** Of HTTP or SMTP. */
  readonly status?: number
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/** Another try may help. */
export function notDelivered(message: string, { status, retryAfterMs, cause }: DeliveryFailure = {}): MillraceError {
  return new MillraceError('NOTICE_NOT_DELIVERED', message, {
    retryable: true,
    details: { ...(status !== undefined && { status }), ...(retryAfterMs !== undefined && { retryAfterMs }) },
    ...(cause !== undefined && { cause }),
  })
}

/** No try without a change will help. */
export function refused(message: string, { status }: DeliveryFailure = {}): MillraceError {
  return new MillraceError('NOTICE_REFUSED', message, { details: status === undefined ? {} : { status } })
}

const SHOWN_CHARS_MAX = 200

/** A text of the other side, or of a library, as it may be shown: short, on one line, without what must stay secret. */
export function shownReply(text: string, secrets: readonly string[]): string {
  let shown = text
  for (const secret of secrets) if (secret.length >= 4) shown = shown.replaceAll(secret, '***')
  // oxlint-disable-next-line no-control-regex -- they are what is taken out
  return withoutPasswords(shown.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').trim()).slice(0, SHOWN_CHARS_MAX)
}

const WORDS = {
  firing: 'firing',
  reminder: 'still firing',
  acknowledged: 'acknowledged',
  recovered: 'recovered',
} as const

/** `[critical] nothing-processing mail: firing` */
export function titleOf({ kind, severity, rule, connection, name }: Notice): string {
  const where = connection === 'default' ? name : `${connection}/${name}`
  return `[${severity}] ${rule} ${where}: ${WORDS[kind]}`
}

/** One sentence, also about an end: what it was, and how long it lasted. */
export function sentenceOf({ kind, text, startedAtMs, atMs, note }: Notice): string {
  const lasted = formatDuration(Math.max(0, atMs - startedAtMs))
  const said = note === null ? '' : ` (${note})`
  if (kind === 'recovered') return `over after ${lasted}; it was: ${text}${said}`
  if (kind === 'reminder') return `${text}; for ${lasted} now${said}`
  return `${text}${said}`
}
