// Who may do what in the database: four roles as data, and the script that grants it. The reasons are in docs/roles.md.
import { escapeLiteral } from 'pg'
import { GRANTS_SQL } from './sql.generated.ts'
import { SCHEMA_DEFAULT, checkSchemaName, sqlText } from './sql-text.ts'

export const ROLES = ['producer', 'worker', 'operator', 'viewer'] as const
export type Role = (typeof ROLES)[number]

export interface Grant {
  readonly kind: 'table' | 'view' | 'sequence' | 'routine'
  readonly privileges: readonly ('select' | 'insert' | 'update' | 'delete' | 'usage' | 'execute')[]
  /** Names without the schema; `*` stands for any characters. */
  readonly names: readonly string[]
  readonly except?: readonly string[]
  /** These functions must run with the rights of their owner: the role has no rights on the tables they use. */
  readonly definer?: boolean
}

/** What a start looks at to know the version of the schema. */
const VERSION: Grant = { kind: 'table', privileges: ['select'], names: ['schema_migrations'] }
/** Small functions without tables behind them, which appear in queries. */
const WORDS: Grant = {
  kind: 'routine',
  privileges: ['execute'],
  names: ['now_at', 'ms_of', 'at_ms', 'after_ms', 'payload_has', 'pg_identity', 'learn_system'],
}
const SEQUENCES: Grant = { kind: 'sequence', privileges: ['usage', 'select'], names: ['*'] }
const ALL_ROWS: Grant = {
  kind: 'table',
  privileges: ['select', 'insert', 'update', 'delete'],
  names: ['*'],
  except: ['schema_migrations'],
}
const VIEWS: Grant = { kind: 'view', privileges: ['select'], names: ['*'] }

/** The verbs of a process that runs jobs; an operator has no use for them. */
const RUNNING = ['cycle', 'complete_jobs', 'register_worker', 'beat_worker', 'bury_workers', 'lead_role', 'take_starts']
/** The same for those that keep the hybrid going. */
const DISPATCHING = [
  'relay_jobs',
  'beat_session',
  'mark_runs',
  'confirm_runs',
  'return_runs',
  'requeue_runs',
  'requeue_old',
  'give_back',
  'bequeath_runs',
  'flip_queues',
  'bear_epoch',
  'renew_server',
]

export const ROLE_GRANTS: Readonly<Record<Role, readonly Grant[]>> = {
  producer: [
    {
      kind: 'routine',
      privileges: ['execute'],
      names: [
        'insert_plain',
        'insert_one',
        'insert_jobs',
        'insert_in_transaction',
        'enqueue',
        'ensure_queue',
        'records_of',
        'dispatch_of',
      ],
      definer: true,
    },
    { kind: 'table', privileges: ['select'], names: ['job_queues', 'job_parents', 'workers'] },
    WORDS,
    VERSION,
  ],
  worker: [{ kind: 'routine', privileges: ['execute'], names: ['*'] }, ALL_ROWS, VIEWS, SEQUENCES, VERSION],
  operator: [
    { kind: 'routine', privileges: ['execute'], names: ['*'], except: [...RUNNING, ...DISPATCHING] },
    ALL_ROWS,
    VIEWS,
    { kind: 'view', privileges: ['delete'], names: ['jobs'] },
    SEQUENCES,
    VERSION,
  ],
  viewer: [
    VIEWS,
    // The view of scale signals calls it.
    { kind: 'routine', privileges: ['execute'], names: ['ready_of'], definer: true },
    { kind: 'table', privileges: ['select'], names: ['job_queues', 'workers', 'batches', 'schedules', 'job_daily'] },
    WORDS,
    VERSION,
  ],
}

export interface GrantsOptions {
  readonly schema?: string
  /** `app` makes app_producer, app_worker …; the name of the schema by default. */
  readonly prefix?: string
  readonly grants?: Readonly<Record<Role, readonly Grant[]>>
}

/** The script of src/backends/postgres/roles/grants.sql, ready for psql. */
export function renderGrants({
  schema = SCHEMA_DEFAULT,
  prefix = schema,
  grants = ROLE_GRANTS,
}: GrantsOptions = {}): string {
  checkSchemaName(schema)
  checkSchemaName(prefix)
  const rows = ROLES.flatMap((role) => grants[role].map((grant) => rowOf(roleName(prefix, role), grant)))
  return sqlText(
    GRANTS_SQL.replace(/(?<=values ):grants\b/g, () => rows.join(',\n    ')),
    schema,
  )
}

export function roleName(prefix: string, role: Role): string {
  return `${prefix}_${role}`
}

function rowOf(role: string, { kind, privileges, names, except = [], definer = false }: Grant): string {
  const values = [role, kind, privileges.join(', '), patternOf(names), patternOf(except)]
  return `(${values.map(escapeLiteral).join(', ')}, ${definer})`
}

/** Matches the whole name; no names match nothing. */
function patternOf(names: readonly string[]): string {
  return `^(${names.map((name) => name.replaceAll('*', '.*')).join('|')})$`
}
