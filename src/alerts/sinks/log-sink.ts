// The log of this process, for whoever collects logs anyway.
import type { Logger } from '../../runtime/logger.ts'
import { sentenceOf, titleOf } from './sink.ts'
import type { Sink } from './sink.ts'

const LEVELS = { info: 'info', warning: 'warn', critical: 'error' } as const

export function logSink(logger: Logger): Sink {
  return {
    send(notice) {
      const { kind, key, incident, dedupeKey, severity, value, limit, system } = notice
      const level = kind === 'recovered' || kind === 'acknowledged' ? 'info' : LEVELS[severity]
      const fields = { system, alert: key, kind, severity, incident, dedupeKey, value, limit }
      logger[level](fields, `${titleOf(notice)}: ${sentenceOf(notice)}`)
      return Promise.resolve('written to the log')
    },
  }
}
