// How a command ends, as numbers that scripts can rely on, and which error ends it how. One table each;
// docs/cli.md and every `--help` are written from them.
import type { ErrorCode } from '../core/errors.ts'

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unmet: 4,
  unavailable: 69,
  timedOut: 124,
  interrupted: 130,
} as const

export type ExitName = keyof typeof EXIT
export type ExitCode = (typeof EXIT)[ExitName]

export const EXIT_MEANINGS: Readonly<Record<ExitName, string>> = {
  done: 'done',
  failed: 'failed, or nothing was done because you said no',
  usage: 'wrong usage: the message says what to write instead',
  notFound: 'what you named does not exist',
  unmet: 'a condition is not met: degraded, behind, not replayable, over the memory limit',
  unavailable: 'the store cannot be reached',
  timedOut: 'timed out',
  interrupted: 'interrupted',
}

/** Errors of the command line itself. */
export const CLI_ERROR_EXITS = {
  USAGE: 'usage',
  NEEDS_YES: 'usage',
  NO_STORE: 'usage',
  CONFIG_NOT_FOUND: 'usage',
  CONFIG_INVALID: 'usage',
  CONFIG_FAILED: 'failed',
  DECLINED: 'failed',
  NOT_FOUND: 'notFound',
  UNMET: 'unmet',
  INTERRUPTED: 'interrupted',
} as const satisfies Readonly<Record<string, ExitName>>

export type CliErrorCode = keyof typeof CLI_ERROR_EXITS

/** A new code of the catalogue does not compile without a row here. */
export const ERROR_EXITS: Readonly<Record<ErrorCode, ExitName>> = {
  UNKNOWN_JOB: 'notFound',
  DUPLICATE_JOB: 'usage',
  INVALID_OPTION: 'usage',
  INVALID_NAME: 'usage',
  INVALID_KEY: 'usage',
  INVALID_PRIORITY: 'usage',
  INVALID_DURATION: 'usage',
  INVALID_CRON: 'usage',
  INVALID_TIME_ZONE: 'usage',
  INVALID_PAYLOAD: 'usage',
  PAYLOAD_NOT_JSON: 'usage',
  PAYLOAD_TOO_LARGE: 'usage',
  PAYLOAD_SECRET: 'usage',
  RESULT_TOO_LARGE: 'failed',
  PROGRESS_TOO_LARGE: 'failed',
  BULK_TOO_LARGE: 'usage',
  DEPENDENCY_NOT_FOUND: 'notFound',
  DEPENDENCY_CYCLE: 'usage',
  BATCH_NOT_FOUND: 'notFound',
  BATCH_CLOSED: 'unmet',
  JOB_NOT_FOUND: 'notFound',
  JOB_FAILED: 'failed',
  JOB_CANCELLED: 'failed',
  WAIT_TIMEOUT: 'timedOut',
  SCHEDULE_NOT_FOUND: 'notFound',
  QUEUE_NOT_FOUND: 'notFound',
  CONNECTION_NOT_FOUND: 'notFound',
  CONNECTION_MIXED: 'usage',
  UNIQUE_KEY_TAKEN: 'unmet',
  NOT_REPLAYABLE: 'unmet',
  IDEMPOTENCY_BUSY: 'failed',
  IDEMPOTENCY_FAILED: 'failed',
  NOTE_CONFLICT: 'failed',
  LEASE_LOST: 'failed',
  JOB_TIMEOUT: 'timedOut',
  POISON: 'failed',
  WORKER_DIED: 'failed',
  PARENT_FAILED: 'failed',
  NOT_A_TRANSACTION: 'failed',
  NOT_COMMITTED: 'failed',
  NOT_SUPPORTED: 'failed',
  STORE_UNAVAILABLE: 'unavailable',
  STORE_TIMEOUT: 'unavailable',
  STORE_REFUSED: 'failed',
  STORE_CONFLICT: 'failed',
  SCHEMA_TOO_OLD: 'unmet',
  SCHEMA_TOO_NEW: 'unmet',
  SCHEMA_DRIFT: 'unmet',
  MIGRATION_BLOCKED: 'timedOut',
  MIGRATION_FAILED: 'failed',
  EMBEDDED_MISSING: 'unavailable',
  REDIS_CLIENT_MISSING: 'unavailable',
  EMBEDDED_FAILED: 'unavailable',
  PORT_UNAVAILABLE: 'failed',
  NOTICE_NOT_DELIVERED: 'failed',
  NOTICE_REFUSED: 'failed',
  MAILER_MISSING: 'failed',
  TASK_NOT_FOUND: 'notFound',
  TASK_BUSY: 'unmet',
  BACKUP_TOOL_MISSING: 'failed',
  BACKUP_TOOL_OLD: 'failed',
  BACKUP_NO_SPACE: 'failed',
  BACKUP_FAILED: 'failed',
  STOPPED: 'failed',
}

/** What Node and database drivers say when nobody answers; a backend should have said STORE_UNAVAILABLE. */
const NETWORK_CODES: readonly string[] = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
]

/** By its code, not by its class: a configuration file may bring errors of another copy of this package. */
export function exitOf(code: string | undefined): ExitCode {
  if (code === undefined) return EXIT.failed
  if (Object.hasOwn(CLI_ERROR_EXITS, code)) return EXIT[CLI_ERROR_EXITS[code as CliErrorCode]]
  if (Object.hasOwn(ERROR_EXITS, code)) return EXIT[ERROR_EXITS[code as ErrorCode]]
  return NETWORK_CODES.includes(code) ? EXIT.unavailable : EXIT.failed
}
