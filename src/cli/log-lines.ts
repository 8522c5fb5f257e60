// Log lines on stderr: for people, or one JSON object per line. The level decides what is left out.
import type { Clock } from '../runtime/clock.ts'
import { jsonLogger } from '../runtime/logger.ts'
import type { LogFields, LogLevel, Logger } from '../runtime/logger.ts'
import type { CliIo } from './io.ts'
import { maskUrls, maskUrlsInJson } from './mask.ts'
import { wantsColor } from './output.ts'
import { painted } from './table.ts'
import type { Style } from './table.ts'
import { printable } from './text.ts'

export interface LogLineOptions {
  readonly json: boolean
  readonly level: LogLevel
  readonly clock: Clock
  /** Somebody asked to see the password of a URL. */
  readonly unmasked?: boolean
  /** Before and after a line: whoever keeps a status line clears and draws it there. */
  readonly around?: (write: () => void) => void
}

const STYLES: Readonly<Record<LogLevel, Style | undefined>> = {
  debug: 'dim',
  info: undefined,
  warn: 'yellow',
  error: 'red',
}
const LEVELS = ['debug', 'info', 'warn', 'error'] as const

export function createLogLines(io: Pick<CliIo, 'stderr' | 'env'>, options: LogLineOptions): Logger {
  const { clock, level, unmasked = false, around = (write) => write() } = options
  const mask = unmasked ? (line: string) => line : options.json ? maskUrlsInJson : maskUrls
  const put = (line: string): void => around(() => io.stderr.write(mask(line)))
  const time = (): string => new Date(clock.nowMs()).toISOString()
  if (options.json) {
    const lines = jsonLogger(level, put)
    const stamped = (own: LogLevel) => (fields: LogFields, message: string) =>
      lines[own]({ time: time(), ...fields }, message)
    return { debug: stamped('debug'), info: stamped('info'), warn: stamped('warn'), error: stamped('error') }
  }
  const color = wantsColor(io.stderr, io.env)
  const at = (own: LogLevel) => (fields: LogFields, message: string) => {
    if (LEVELS.indexOf(own) < LEVELS.indexOf(level)) return
    const facts = Object.entries(fields).map(([name, value]) => `${name}=${shortly(value)}`)
    const text = printable([message, ...facts].join(' '))
    put(`${painted(time().slice(11, 19), 'dim', color)} ${painted(text, STYLES[own], color)}\n`)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function shortly(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(`${value.name}: ${value.message}`)
  if (typeof value === 'string') return /^[\w.:@/+-]+$/.test(value) ? value : JSON.stringify(value)
  return JSON.stringify(value) ?? String(value)
}
