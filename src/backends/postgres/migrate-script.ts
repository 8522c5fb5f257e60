// The same steps as text, for those who let nobody but psql near their database. Every part is its own
// transaction, takes the same lock, and refuses to run at another version than the one it starts from.
import type { Direction, Part, Planned } from './migrate-plan.ts'
import { eventOf, outsideOf, partsOf, titleOfStep } from './migrate-plan.ts'
import { latestOf } from './migrate-set.ts'
import type { MigrationSet } from './migrate-set.ts'
import { guard, lockKey, settings } from './migrate-sql.ts'
import { STEP_LIMITS } from './migrate-step.ts'
import { sqlText } from './sql-text.ts'

export interface ScriptOptions {
  readonly set: MigrationSet
  readonly schema: string
  readonly direction: Direction
  /** The version that the database has. */
  readonly from: number
  readonly to: number
}

export function renderScript({ set, schema, direction, from, to }: ScriptOptions): string {
  const steps = direction === 'up' ? stepsUp(set, from, to) : stepsDown(set, from, to)
  const parts = steps.map((step) => renderStep(step, set, schema))
  const head = `-- Millrace, schema ${schema}: ${direction} from version ${from} to ${to}.
-- Run it with: psql -X -v ON_ERROR_STOP=1 -f this-file.sql\n`
  return [head, ...parts].join('\n')
}

interface ScriptStep {
  readonly planned: Planned
  /** The version before it; undefined: the database has no books yet or must not have them after. */
  readonly at: number
}

function stepsUp(set: MigrationSet, from: number, to: number): readonly ScriptStep[] {
  const migrations = set.migrations.filter(({ version }) => version > from && version <= to)
  const steps = migrations.map((migration): ScriptStep => ({
    planned: { kind: 'up', migration },
    at: migration.version - 1,
  }))
  if (to !== latestOf(set) || set.functions.length === 0) return steps
  return [...steps, { planned: { kind: 'functions', version: to }, at: to }]
}

function stepsDown(set: MigrationSet, from: number, to: number): readonly ScriptStep[] {
  const migrations = set.migrations.filter(({ version }) => version > to && version <= from).toReversed()
  const steps = migrations.map((migration): ScriptStep => ({
    planned: { kind: 'down', migration, dropsFunctions: false },
    at: migration.version,
  }))
  const first: ScriptStep = { planned: { kind: 'drop-functions', version: from }, at: from }
  const last: readonly ScriptStep[] = to === 0 ? [{ planned: { kind: 'remove', dropsFunctions: false }, at: 0 }] : []
  return [first, ...steps, ...last]
}

function renderStep({ planned, at }: ScriptStep, set: MigrationSet, schema: string): string {
  const outside = outsideOf(planned)
  const title = `-- ${titleOfStep(planned)}`
  if (outside !== undefined && (planned.kind === 'up' || planned.kind === 'down')) {
    const check = transaction([{ text: guard(at) }], schema)
    return [
      title,
      check,
      sqlText(ended(outside.sql), schema),
      transaction([{ text: eventOf(planned, undefined) }], schema),
    ].join('\n')
  }
  const [first, ...rest] = partsOf(planned, set, undefined)
  const isFirst = planned.kind === 'up' && at === 0
  const parts =
    first === undefined ? [] : isFirst ? [first, { text: guard(at) }, ...rest] : [{ text: guard(at) }, first, ...rest]
  return `${title}\n${transaction(parts, schema)}`
}

function transaction(parts: readonly Part[], schema: string): string {
  const { lockTimeoutMs, statementTimeoutMs } = STEP_LIMITS
  const lines = [
    'begin',
    settings({ lockTimeoutMs, statementTimeoutMs, idleTimeoutMs: 0 }),
    `select pg_advisory_xact_lock(${lockKey(schema)})`,
    ...parts.map(({ text }) => sqlText(text, schema)),
    'commit',
  ]
  return lines.map(ended).join('\n')
}

/** A file may end without a semicolon, and in a comment that would swallow one. */
function ended(text: string): string {
  const trimmed = text.trim()
  if (trimmed.endsWith(';')) return `${trimmed}\n`
  return /--[^\n]*$/.test(trimmed) ? `${trimmed}\n;\n` : `${trimmed};\n`
}
