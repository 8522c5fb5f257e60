// PagerDuty, through its Events API v2. One alert there for one key here: triggered, acknowledged and resolved by it.
import type { NoticeKind } from '../../core/alerting.ts'
import { shortKey, shortText } from '../../core/short-text.ts'
import { post } from './http-post.ts'
import type { PostParts } from './http-post.ts'
import { sentenceOf, titleOf } from './sink.ts'
import type { SentNotice, Sink } from './sink.ts'

export const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue'

const SUMMARY_CHARS_MAX = 1_024
const KEY_CHARS_MAX = 255
const ACTIONS: Readonly<Record<NoticeKind, 'trigger' | 'acknowledge' | 'resolve'>> = {
  firing: 'trigger',
  reminder: 'trigger',
  acknowledged: 'acknowledge',
  recovered: 'resolve',
}

export interface PagerDutyTarget {
  readonly routingKey: string
  readonly url: URL
}

export function pagerDutySink({ routingKey, url }: PagerDutyTarget, parts: PostParts): Sink {
  return {
    async send(notice) {
      const body = JSON.stringify({ routing_key: routingKey, ...pagerDutyEvent(notice) })
      const { text } = await post(url, body, { 'content-type': 'application/json' }, parts)
      return `PagerDuty answered ${text}`
    },
  }
}

/** All but the routing key. */
export function pagerDutyEvent(notice: SentNotice) {
  const { system, rule, connection, name, queue, severity, value, limit, incident, note, host } = notice
  const action = ACTIONS[notice.kind]
  const dedup = shortKey(`${system}:${notice.key}`, KEY_CHARS_MAX)
  if (action !== 'trigger') return { event_action: action, dedup_key: dedup }
  return {
    event_action: action,
    dedup_key: dedup,
    client: 'Millrace',
    payload: {
      summary: shortText(`${titleOf(notice)}: ${sentenceOf(notice)}`, SUMMARY_CHARS_MAX),
      source: system,
      severity,
      timestamp: new Date(notice.startedAtMs).toISOString(),
      component: queue ?? name,
      group: connection,
      class: rule,
      custom_details: { rule, name, value, limit, incident, note, ...(host !== undefined && { host }) },
    },
  }
}
