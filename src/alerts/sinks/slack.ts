// Slack, through an incoming webhook.
import { shortText } from '../../core/short-text.ts'
import { post } from './http-post.ts'
import type { PostParts } from './http-post.ts'
import { sentenceOf, titleOf } from './sink.ts'
import type { SentNotice, Sink } from './sink.ts'

const HEADER_CHARS_MAX = 150
const SECTION_CHARS_MAX = 2_900
const MARKS = { info: ':information_source:', warning: ':warning:', critical: ':rotating_light:' } as const

export function slackSink(url: URL, parts: PostParts): Sink {
  return {
    async send(notice) {
      const body = JSON.stringify(slackBody(notice))
      const { text } = await post(url, body, { 'content-type': 'application/json' }, parts)
      return `Slack answered ${text === '' ? 'nothing' : text}`
    },
  }
}

export function slackBody(notice: SentNotice) {
  const { kind, severity, system, incident } = notice
  const mark = kind === 'recovered' ? ':white_check_mark:' : kind === 'acknowledged' ? ':eyes:' : MARKS[severity]
  const title = shortText(`${mark} ${titleOf(notice)}`, HEADER_CHARS_MAX)
  const at = new Date(notice.atMs).toISOString()
  return {
    // For notifications and old clients.
    text: shortText(escaped(`${titleOf(notice)}: ${sentenceOf(notice)}`), SECTION_CHARS_MAX),
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: title, emoji: true } },
      { type: 'section', text: { type: 'mrkdwn', text: shortText(escaped(sentenceOf(notice)), SECTION_CHARS_MAX) } },
      {
        type: 'context',
        elements: [{ type: 'mrkdwn', text: shortText(escaped(`${system} · ${incident} · ${at}`), SECTION_CHARS_MAX) }],
      },
    ],
  }
}

/** The three characters that Slack gives a meaning; without them nobody is mentioned by the name of a queue. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
