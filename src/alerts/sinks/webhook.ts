// A signed webhook: the notice as JSON.
import type { Clock } from '../../runtime/clock.ts'
import { post } from './http-post.ts'
import type { PostParts } from './http-post.ts'
import { DEDUPE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, signWebhook } from './signature.ts'
import { sentenceOf, titleOf } from './sink.ts'
import type { SentNotice, Sink } from './sink.ts'

export interface WebhookTarget {
  readonly url: URL
  /** Absent: unsigned. */
  readonly secret?: string
  readonly headers: Readonly<Record<string, string>>
}

export function webhookSink({ url, secret, headers }: WebhookTarget, parts: PostParts): Sink {
  return {
    async send(notice) {
      const body = JSON.stringify(webhookBody(notice))
      const own = { ...headers, 'content-type': 'application/json', [DEDUPE_HEADER]: notice.dedupeKey }
      const { status } = await post(url, body, { ...own, ...signed(secret, body, parts.clock) }, parts)
      return `${url.hostname} answered ${status}`
    },
  }
}

function signed(secret: string | undefined, body: string, clock: Clock): Record<string, string> {
  if (secret === undefined) return {}
  const seconds = Math.floor(clock.nowMs() / 1_000)
  return { [TIMESTAMP_HEADER]: String(seconds), [SIGNATURE_HEADER]: signWebhook(secret, seconds, body) }
}

/** Fields may be added; they are not renamed or removed. */
export function webhookBody(notice: SentNotice) {
  const { system, kind, severity, rule, connection, name, queue, key, incident, dedupeKey, value, limit } = notice
  return {
    version: 1,
    system,
    kind,
    severity,
    rule,
    connection,
    name,
    queue,
    alert: key,
    incident,
    dedupeKey,
    title: titleOf(notice),
    text: sentenceOf(notice),
    value,
    limit,
    startedAt: new Date(notice.startedAtMs).toISOString(),
    at: new Date(notice.atMs).toISOString(),
    note: notice.note,
    host: notice.host ?? null,
  }
}
