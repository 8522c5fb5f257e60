// An end that the command line decides itself: wrong usage, nothing found, not confirmed.
import type { CliErrorCode } from './exit-codes.ts'

export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: CliErrorCode

  constructor(code: CliErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
  }
}

/** What was thrown, as a script reads it: `{ error: { code, message } }`. */
export function describeError(error: unknown): { readonly code: string; readonly message: string } {
  const thrown = error as { readonly code?: unknown; readonly message?: unknown } | null | undefined
  const code = typeof thrown?.code === 'string' && thrown.code !== '' ? thrown.code : 'FAILED'
  const message = typeof thrown?.message === 'string' ? thrown.message : String(error)
  // Node reports a refused connection to several addresses as an error without a message.
  return { code, message: message === '' ? code : message }
}
