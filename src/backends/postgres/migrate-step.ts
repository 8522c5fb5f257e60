// One step of a migration against the database: in its own transaction, under the lock of the schema, with a
// short lock_timeout. A step that cannot get a lock is rolled back to a savepoint and tried again after a pause,
// while the transaction keeps the lock of the schema: otherwise ten starting processes would take turns in
// holding up the writers of a table.
import type { ClientBase } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import { sleep } from '../../runtime/clock.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { blockedError, lockHolders, watchBlockers } from './migrate-blockers.ts'
import type { Blocker } from './migrate-blockers.ts'
import { lockKey, settings } from './migrate-sql.ts'
import { sqlStateOf, storeError } from './pg-errors.ts'
import { lineAt } from './sql-text.ts'

export interface StepLimits {
  /** A statement that waits longer for a lock gives up; so long may writers be held up by one try. */
  readonly lockTimeoutMs: number
  /** Tries of one step that cannot get its locks. */
  readonly attemptsMax: number
  /** How long to wait for another process that migrates. */
  readonly waitMs: number
  readonly statementTimeoutMs: number
}

export const STEP_LIMITS: StepLimits = {
  lockTimeoutMs: 1_000,
  attemptsMax: 10,
  waitMs: 60_000,
  statementTimeoutMs: 600_000,
}

/** Longer than any pause between two tries; a frozen migrator must not hold the schema for ever. */
const IDLE_TIMEOUT_MS = 60_000
const PAUSE_BASE_MS = 500
const PAUSE_MAX_MS = 5_000
const WATCHES_PER_TRY = 4

export interface StepContext {
  readonly client: ClientBase
  readonly schema: string
  readonly limits: StepLimits
  readonly runtime: Pick<Runtime, 'clock' | 'random' | 'logger'>
  readonly signal: AbortSignal | undefined
  /** A second connection; undefined when only one was given. */
  readonly openSecond: (() => Promise<ClientBase>) | undefined
}

export interface Step {
  /** `migration 0002_tags up`, for messages. */
  readonly title: string
  /** Looks again, now that nobody else migrates: somebody may have done the step meanwhile. */
  readonly isDue: (client: ClientBase) => Promise<boolean>
  readonly run: (client: ClientBase) => Promise<void>
}

export type StepResult = 'done' | 'not-due' | 'busy'

export async function runStep(context: StepContext, step: Step): Promise<StepResult> {
  const { client } = context
  if (!(await begin(context, client, IDLE_TIMEOUT_MS))) return 'busy'
  let isOpen = true
  try {
    if (!(await step.isDue(client))) return 'not-due'
    await tryUntilFree(context, step)
    await client.query('commit')
    isOpen = false
    return 'done'
  } finally {
    // A connection that is gone has rolled back by itself.
    if (isOpen) await client.query('rollback').catch(() => undefined)
  }
}

/** Begins a transaction that holds the lock of the schema; false: another one holds it. */
export async function begin(context: StepContext, client: ClientBase, idleTimeoutMs: number): Promise<boolean> {
  await client.query('begin isolation level read committed read write')
  let isHeld = false
  try {
    await client.query(settings({ ...context.limits, idleTimeoutMs }))
    // Asked for, not waited for: a waiter would have a snapshot, and `create index concurrently` waits for those.
    const { rows } = await client.query<{ isHeld: boolean }>('select pg_try_advisory_xact_lock($1) as "isHeld"', [
      String(lockKey(context.schema)),
    ])
    isHeld = rows[0]?.isHeld === true
    return isHeld
  } finally {
    if (!isHeld) await client.query('rollback').catch(() => undefined)
  }
}

/** Runs the text of a file; a fault of the text names its line, trouble with the server passes as it is. */
export async function runScript(client: ClientBase, text: string, title: string): Promise<void> {
  try {
    await client.query(text)
  } catch (error) {
    const known = storeError(error, title)
    if (sqlStateOf(error) === undefined || sqlStateOf(error) === '42501' || known.retryable) throw error
    const position = error instanceof Error && 'position' in error ? Number(error.position) : Number.NaN
    const line = Number.isFinite(position) ? `, line ${lineAt(text, position - 1)}` : ''
    const said = error instanceof Error ? error.message : String(error)
    throw new MillraceError('MIGRATION_FAILED', `${title}${line}: ${said}; nothing of it was kept`, {
      cause: error,
      details: known.details,
    })
  }
}

async function tryUntilFree(context: StepContext, step: Step): Promise<void> {
  const { client, schema, limits, runtime } = context
  for (let attempt = 1; ; attempt++) {
    let blockers: readonly Blocker[] = []
    await client.query('savepoint millrace_try')
    try {
      // The first try is seldom blocked, so it is not worth a second connection.
      if (attempt === 1) await step.run(client)
      else await runWatched(context, step, (seen) => (blockers = seen))
      return
    } catch (error) {
      if (!isBlocked(error)) throw error
      await client.query('rollback to savepoint millrace_try')
      if (blockers.length === 0) blockers = await lockHolders(client, schema)
      if (attempt >= limits.attemptsMax) throw outOfTries(step.title, context, blockers, error)
      runtime.logger.warn({ step: step.title, attempt, blockers }, 'a migration waits for locks and will try again')
      await pause(context, attempt)
    }
  }
}

async function runWatched(
  { client, openSecond, limits, runtime }: StepContext,
  step: Step,
  seen: (blockers: readonly Blocker[]) => void,
): Promise<void> {
  // Without it we can still migrate, only explain less.
  const second = await openSecond?.().catch(() => undefined)
  if (second === undefined) return step.run(client)
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const watcher = {
    client: second,
    pid: rows[0]?.pid ?? 0,
    clock: runtime.clock,
    everyMs: limits.lockTimeoutMs / WATCHES_PER_TRY,
  }
  await watchBlockers(watcher, () => step.run(client), seen)
}

export async function pause({ runtime, signal }: StepContext, attempt: number): Promise<void> {
  const longest = Math.min(PAUSE_MAX_MS, PAUSE_BASE_MS * 2 ** (attempt - 1))
  await sleep(runtime.clock, longest * (0.5 + runtime.random() / 2), signal)
  if (signal?.aborted) throw new MillraceError('STOPPED', 'the migration was stopped while it waited for a lock')
}

/** A lock that was not free in time, or a deadlock that the server broke: worth another try. */
export function isBlocked(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '55P03' || state === '40P01'
}

export function outOfTries(
  title: string,
  { limits: { attemptsMax, lockTimeoutMs } }: StepContext,
  blockers: readonly Blocker[],
  cause: unknown,
): MillraceError {
  const tries = `${attemptsMax} ${attemptsMax === 1 ? 'try' : 'tries'} of ${lockTimeoutMs} ms`
  return blockedError(`${title} did not get its locks in ${tries}`, blockers, cause)
}
