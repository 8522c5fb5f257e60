// Step after step until the plan is done: each under the lock of the schema, each decided from what the
// database says at that moment. Whoever finds the lock taken looks again a little later.
import type { ClientBase } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import { sleep } from '../../runtime/clock.ts'
import { blockedError, migrationHolders } from './migrate-blockers.ts'
import { runOutside } from './migrate-outside.ts'
import { eventOf, outsideOf, partsOf, titleOfStep } from './migrate-plan.ts'
import type { Planned } from './migrate-plan.ts'
import type { MigrationSet } from './migrate-set.ts'
import { readRecord } from './migrate-state.ts'
import type { SchemaRecord } from './migrate-state.ts'
import { runScript, runStep } from './migrate-step.ts'
import type { StepContext, StepResult } from './migrate-step.ts'
import { sqlStateOf, storeError } from './pg-errors.ts'
import { sqlText } from './sql-text.ts'

const POLL_MIN_MS = 25
const POLL_MAX_MS = 250

export interface Walk {
  readonly context: StepContext
  readonly set: MigrationSet
  /** Who writes the rows of the history. */
  readonly by: string
  readonly plan: (record: SchemaRecord, done: readonly Planned[]) => Planned | undefined
}

/** Answers the steps that this process did itself. */
export async function walk({ context, set, by, plan }: Walk): Promise<readonly Planned[]> {
  const { client, schema, limits, runtime, signal } = context
  const done: Planned[] = []
  let waitingSinceMs: number | undefined
  // Ends when nothing is planned; every turn is either a step of a finite plan or falls under `waitMs`.
  for (;;) {
    const record = await readRecord(client, schema)
    const planned = plan(record, done)
    if (planned === undefined) return done
    const isDue = async (inside: ClientBase): Promise<boolean> =>
      sameStep(plan(await readRecord(inside, schema), done), planned)
    const result = await perform(context, set, by, planned, isDue).catch((error: unknown) => {
      throw sqlStateOf(error) === '42501' ? mayNotMigrate(schema, record, error) : error
    })
    if (result === 'done') {
      runtime.logger.info({ schema, step: titleOfStep(planned) }, 'schema migrated')
      done.push(planned)
      waitingSinceMs = undefined
      continue
    }
    const nowMs = runtime.clock.monoMs()
    waitingSinceMs ??= nowMs
    if (nowMs - waitingSinceMs >= limits.waitMs) {
      const what = `another process migrates schema ${schema} and did not finish within ${limits.waitMs} ms`
      throw blockedError(what, await migrationHolders(client, schema))
    }
    await sleep(runtime.clock, POLL_MIN_MS + runtime.random() * (POLL_MAX_MS - POLL_MIN_MS), signal)
    if (signal?.aborted) throw new MillraceError('STOPPED', 'stopped while another process migrated the schema')
  }
}

function perform(
  context: StepContext,
  set: MigrationSet,
  by: string,
  planned: Planned,
  isDue: (client: ClientBase) => Promise<boolean>,
): Promise<StepResult> {
  const { schema } = context
  const title = titleOfStep(planned)
  const outside = outsideOf(planned)
  if (outside !== undefined && (planned.kind === 'up' || planned.kind === 'down')) {
    const record = sqlText(eventOf(planned, by), schema)
    return runOutside(context, { title, isDue, text: sqlText(outside.sql, schema), plain: outside.text, record })
  }
  const parts = partsOf(planned, set, by)
  const run = async (client: ClientBase): Promise<void> => {
    for (const part of parts) await runScript(client, sqlText(part.text, schema), part.title ?? title)
  }
  return runStep(context, { title, isDue, run })
}

function sameStep(now: Planned | undefined, planned: Planned): boolean {
  return now !== undefined && titleOfStep(now) === titleOfStep(planned)
}

function mayNotMigrate(schema: string, { isInstalled }: SchemaRecord, error: unknown): MillraceError {
  const { details } = storeError(error, 'migrate')
  const advice = isInstalled
    ? `this user does not own schema ${schema} and may not migrate it: run \`millrace migrate up\` as its owner`
    : `this user may not create schema ${schema}: as an administrator run \`create schema ${schema} authorization <user>\`, ` +
      `or \`grant create on database <database> to <user>\`, or run \`millrace migrate up\` as another user`
  const said = error instanceof Error ? ` (${error.message})` : ''
  return new MillraceError('STORE_REFUSED', `${advice}${said}`, { cause: error, details })
}
