// Structured logging behind an interface that pino, winston and console satisfy. Payloads are never logged.

export type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

const nothing = (): void => undefined

export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LEVELS)[number]

/** One line of JSON per message, to `write` (stderr by default, so that stdout stays for data). */
export function jsonLogger(level: LogLevel = 'info', write: (line: string) => void = writeToStderr): Logger {
  const at = (own: LogLevel) =>
    LEVELS.indexOf(own) < LEVELS.indexOf(level)
      ? nothing
      : (fields: LogFields, message: string): void => write(`${stringify({ level: own, message, ...fields })}\n`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function writeToStderr(line: string): void {
  process.stderr.write(line)
}

function stringify(fields: LogFields): string {
  return JSON.stringify(fields, (_, value: unknown) => {
    if (value instanceof Error) return { name: value.name, message: value.message, stack: value.stack }
    return typeof value === 'bigint' ? String(value) : value
  })
}
