// Brings the schema of a database to the version of this package and back, and tells where it stands. Many
// processes may start at once: one migrates, the others wait and then find nothing to do. Guide: docs/migrations.md.
import { hostname } from 'node:os'
import type { ClientBase } from 'pg'
import { checkInteger } from '../../core/names.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { openConnections } from './migrate-connect.ts'
import { planDown, planUp, titleOfStep } from './migrate-plan.ts'
import type { Direction, Planned } from './migrate-plan.ts'
import { renderScript } from './migrate-script.ts'
import { EMBEDDED_SET, checkSet, latestOf } from './migrate-set.ts'
import type { FunctionFile, Migration } from './migrate-set.ts'
import { readRecord } from './migrate-state.ts'
import type { SchemaRecord } from './migrate-state.ts'
import { readStatus } from './migrate-status.ts'
import type { MigrationStatus } from './migrate-status.ts'
import { STEP_LIMITS } from './migrate-step.ts'
import type { StepContext, StepLimits } from './migrate-step.ts'
import { walk } from './migrate-walk.ts'
import { storeError } from './pg-errors.ts'
import { SCHEMA_DEFAULT, checkSchemaName } from './sql-text.ts'

export interface MigratorOptions extends Partial<StepLimits>, Partial<Pick<Runtime, 'clock' | 'random' | 'logger'>> {
  /** `postgres://…`; the migrator opens one connection, and a second one while something is in its way. */
  readonly url?: string
  /** Instead of a url: a connection (not a pool) that is in no transaction. It is not closed. */
  readonly client?: ClientBase
  readonly schema?: string
  readonly migrations?: readonly Migration[]
  readonly functions?: readonly FunctionFile[]
  readonly connectTimeoutMs?: number
  /** Ends a wait for locks; a statement that runs is not interrupted. */
  readonly signal?: AbortSignal
}

export interface MigrationReport {
  readonly from: number
  readonly to: number
  /** What this call did itself; another process may have done the rest. */
  readonly steps: readonly string[]
}

export interface Migrator {
  status(): Promise<MigrationStatus>
  /** Up to the latest version, or to `to`. `functions: true` creates the functions again in any case. */
  up(to?: number, options?: { readonly functions?: boolean }): Promise<MigrationReport>
  /** Down to `to`; 0 removes everything, jobs and history included. */
  down(to: number): Promise<MigrationReport>
  /** The same as text for psql; `from` is the version of the database (up: 0, down: the latest). */
  sql(direction: Direction, to?: number, from?: number): string
  close(): Promise<void>
}

export function createMigrator(options: MigratorOptions): Migrator {
  const schema = checkSchemaName(options.schema ?? SCHEMA_DEFAULT)
  const { migrations = EMBEDDED_SET.migrations, functions = EMBEDDED_SET.functions } = options
  const set = checkSet({ migrations, functions })
  const latest = latestOf(set)
  const limits = { ...STEP_LIMITS, ...limitsOf(options) }
  const connections = openConnections(options)
  const by = `${hostname()} pid ${process.pid}`
  const { clock, random, logger } = createRuntime(definedOf(options))
  let last: Promise<unknown> = Promise.resolve()

  /** One call at a time: they share a connection. */
  const inTurn = <Value>(what: string, work: (context: StepContext) => Promise<Value>): Promise<Value> => {
    const run = async (): Promise<Value> => {
      try {
        const client = await connections.first()
        const { openSecond } = connections
        return await work({
          client,
          schema,
          limits,
          runtime: { clock, random, logger },
          signal: options.signal,
          openSecond,
        })
      } catch (error) {
        throw storeError(error, `${what} of schema ${schema}`)
      }
    }
    const turn = last.then(run, run)
    last = turn.catch(() => undefined)
    return turn
  }

  const migrate = (
    what: string,
    plan: (record: SchemaRecord, done: readonly Planned[]) => Planned | undefined,
  ): Promise<MigrationReport> =>
    inTurn(what, async (context) => {
      const { version: from } = await readRecord(context.client, schema)
      const done = await walk({ context, set, by, plan })
      const { version: to } = await readRecord(context.client, schema)
      return { from, to, steps: done.map(titleOfStep) }
    })

  return {
    status: () => inTurn('reading the status', ({ client }) => readStatus(client, schema, set)),
    up: async (to = latest, { functions: again = false } = {}) => {
      const target = checkInteger(to, 'to', 0, latest)
      return migrate('migrating up', (record, done) => {
        const planned = planUp(record, set, target, schema)
        if (planned !== undefined || !again || record.version !== latest) return planned
        return done.some(({ kind }) => kind === 'functions') ? undefined : { kind: 'functions', version: latest }
      })
    },
    down: async (to) => {
      const target = checkInteger(to, 'to', 0, latest)
      return migrate('migrating down', (record) => planDown(record, set, target, schema))
    },
    sql: (direction, to = direction === 'up' ? latest : 0, from = direction === 'up' ? 0 : latest) => {
      checkInteger(to, 'to', 0, latest)
      checkInteger(from, 'from', 0, latest)
      return renderScript({ set, schema, direction, from, to })
    },
    close: async () => {
      await last
      await connections.close()
    },
  }
}

function limitsOf(options: MigratorOptions): Partial<StepLimits> {
  return Object.fromEntries(
    Object.keys(STEP_LIMITS).flatMap((name) => {
      const value = options[name as keyof StepLimits]
      return value === undefined ? [] : [[name, checkInteger(value, name, 1, 24 * 60 * 60_000)]]
    }),
  )
}

function definedOf({ clock, random, logger }: MigratorOptions): Partial<Runtime> {
  return { ...(clock && { clock }), ...(random && { random }), ...(logger && { logger }) }
}
