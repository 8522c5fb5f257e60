// E-mail over SMTP, with nodemailer: an optional peer, loaded when the first letter is sent. All letters of an incident are
// one conversation; the same notice sent twice is the same letter, by its Message-ID.
import { createHash } from 'node:crypto'
import type { SendMailOptions } from 'nodemailer'
import { MillraceError } from '../../core/errors.ts'
import { readField } from '../../core/classify.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Clock } from '../../runtime/clock.ts'
import { notDelivered, refused, sentenceOf, shownReply, titleOf } from './sink.ts'
import type { SentNotice, Sink } from './sink.ts'

export interface EmailTarget {
  /** A URL or the options of a transport; with the password in it. */
  readonly smtp: string | Readonly<Record<string, unknown>>
  readonly from: string
  readonly to: readonly string[]
}

export interface EmailParts {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly secrets: readonly string[]
  readonly load?: () => Promise<typeof import('nodemailer')>
}

export function emailSink({ smtp, from, to }: EmailTarget, parts: EmailParts): Sink {
  const { clock, timeoutMs, secrets, load = () => import('nodemailer') } = parts
  return {
    async send(notice) {
      const { createTransport } = await loaded(load)
      const waits = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs }
      const server = typeof smtp === 'string' ? { url: smtp } : smtp
      const transport = createTransport({ ...server, ...waits, disableFileAccess: true, disableUrlAccess: true })
      try {
        const sent = await bounded(clock, timeoutMs, 'the mail server', transport.sendMail(letter(notice, from, to)))
        return `the mail server answered ${shownReply(sent.response, secrets)}`
      } catch (error) {
        throw failure(error, secrets)
      } finally {
        transport.close()
      }
    },
  }
}

async function loaded(load: () => Promise<typeof import('nodemailer')>): Promise<typeof import('nodemailer')> {
  try {
    return await load()
  } catch (error) {
    const message = 'alerts by e-mail need the package nodemailer, and it is not installed: npm install nodemailer'
    throw new MillraceError('MAILER_MISSING', message, { cause: error })
  }
}

function letter(notice: SentNotice, from: string, to: readonly string[]): SendMailOptions {
  const { system, incident, key, dedupeKey, note, value, limit } = notice
  const first = idOf(`${incident}#1`)
  const own = idOf(dedupeKey)
  const lines = [
    sentenceOf(notice),
    '',
    `system: ${system}`,
    `alert: ${key}`,
    `value: ${value} (limit ${limit})`,
    `since: ${new Date(notice.startedAtMs).toISOString()}`,
    `at: ${new Date(notice.atMs).toISOString()}`,
    ...(note === null ? [] : [`note: ${note}`]),
    '',
    `millrace alerts ack ${key}`,
  ]
  return {
    from,
    to: [...to],
    subject: `${system}: ${titleOf(notice)}`,
    text: `${lines.join('\n')}\n`,
    messageId: own,
    ...(own !== first && { inReplyTo: first, references: first }),
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Millrace-Dedupe-Key': dedupeKey },
  }
}

function idOf(text: string): string {
  return `<${createHash('sha256').update(text).digest('hex').slice(0, 32)}@millrace>`
}

/** SMTP says it by its code: 4xx may work later, 5xx will not; a login that is refused neither. */
function failure(error: unknown, secrets: readonly string[]): MillraceError {
  const code = readField(error, 'code')
  const status = readField(error, 'responseCode')
  const message = readField(error, 'message')
  const text = shownReply(typeof message === 'string' ? message : String(error), secrets)
  const isFinal = code === 'EAUTH' || code === 'EENVELOPE' || (typeof status === 'number' && status >= 500)
  const facts = typeof status === 'number' ? { status } : {}
  // No cause: the error of the library may carry the conversation, login and all.
  const isOurs = typeof status === 'number' && status >= 400 && status < 500
  if (isFinal && !isOurs) return refused(`the mail server refused the letter: ${text}`, facts)
  return notDelivered(`the letter could not be handed over: ${text}`, facts)
}
