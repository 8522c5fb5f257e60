// Which store a command works on, and who said so. A flag goes before our own variable, that before the
// configuration file, and that before DATABASE_URL, which most projects set for something else as well.
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { PG_MAJOR } from '../backends/embedded/files.ts'
import type { PostgresOptions } from '../backends/postgres/backend.ts'
import type { AnyJob } from '../core/definition.ts'
import type { MillraceOptions } from '../millrace.ts'
import type { Backend } from '../store/ports.ts'
import type { RedisStoreOptions } from '../stores.ts'
import { CliError } from './cli-error.ts'
import { CONFIG_NAMES, loadConfig } from './config-file.ts'
import type { LoadModule, LoadedConfig } from './config-file.ts'
import type { MillraceConfig } from './config.ts'
import type { CliIo } from './io.ts'
import { maskUrls } from './mask.ts'

/** The flags that every command has. */
export interface GlobalFlags {
  readonly config?: string
  readonly postgres?: string
  readonly redis?: string
  readonly schema?: string
  readonly json?: boolean
  readonly color?: boolean
}

export interface Settings {
  readonly loaded: LoadedConfig | null
  /** For `createMillrace`, all but the store; no jobs without a configuration file. */
  readonly options: Omit<MillraceOptions<readonly AnyJob[]>, StoreOption>
  readonly work: MillraceConfig['work']
  readonly pools: MillraceConfig['pools']
  readonly supervise: MillraceConfig['supervise']
  readonly http: MillraceConfig['http']
  readonly autoscale: MillraceConfig['autoscale']
  readonly alerts: MillraceConfig['alerts']
  readonly store: StoreChoice
}

type StoreOption = 'postgres' | 'redis' | 'schema' | 'dataDir' | 'backend' | 'connections'

export type StoreChoice = {
  /** For people; a URL has its password masked. */
  readonly shown: string
  /** `--postgres`, the name of a variable, or of the configuration file. */
  readonly from: string
} & (
  | { readonly kind: 'postgres'; readonly server: PostgresServer; readonly race?: RedisStoreOptions }
  | { readonly kind: 'redis'; readonly server: RedisStoreOptions }
  | { readonly kind: 'embedded'; readonly dir: string; readonly schema?: string }
  | { readonly kind: 'backends'; readonly connections: Readonly<Record<string, Backend>> }
)

export type PostgresServer = Omit<PostgresOptions, 'logger' | 'clock'>

export interface SettingsNeeds {
  /** This command runs or enqueues jobs, so their definitions must be known. */
  readonly jobs?: string
  /** Starting a database of its own is what this command is for. */
  readonly embedded?: boolean
}

export async function readSettings(
  io: Pick<CliIo, 'cwd' | 'env'>,
  flags: GlobalFlags,
  needs: SettingsNeeds,
  load?: LoadModule,
): Promise<Settings> {
  const loaded = await loadConfig(io.cwd, flags.config, load)
  if (loaded === null && needs.jobs !== undefined) {
    const message = `${needs.jobs} needs to know your jobs, and there is no ${CONFIG_NAMES[0]} in this folder or above: write one with millrace init, or name one with --config FILE`
    throw new CliError('CONFIG_NOT_FOUND', message)
  }
  const {
    work,
    http,
    pools,
    supervise,
    autoscale,
    alerts,
    postgres,
    redis,
    schema,
    dataDir,
    backend,
    connections,
    ...options
  } = loaded?.config ?? { jobs: [] }
  const named = { postgres, redis, schema, dataDir, backend, connections }
  const store = chooseStore(io, flags, named, loaded?.path ?? null, needs)
  return { loaded, work, http, pools, supervise, autoscale, alerts, store, options }
}

/** `named` is what the configuration at `path` says of its store. */
function chooseStore(
  { env, cwd }: Pick<CliIo, 'cwd' | 'env'>,
  flags: GlobalFlags,
  named: { readonly [Name in StoreOption]: MillraceConfig[Name] | undefined },
  path: string | null,
  needs: SettingsNeeds,
): StoreChoice {
  const file = basename(path ?? '')
  const said = flags.schema ?? (env['MILLRACE_SCHEMA'] || named.schema)
  const schema = said === undefined ? {} : { schema: said }
  const postgres = (server: string | PostgresServer, from: string): StoreChoice => {
    const options = typeof server === 'string' ? { url: server } : server
    checkUrl(options.url, from)
    return { kind: 'postgres', shown: maskUrls(options.url), from, server: { ...options, ...schema } }
  }
  const servers = (
    ledger: string | PostgresServer | undefined,
    race: string | RedisStoreOptions | undefined,
    from: readonly [ledger: string, race: string],
  ): StoreChoice | undefined => {
    if (!race) return ledger ? postgres(ledger, from[0]) : undefined
    const before = redisChoice(race, from[1])
    return ledger ? together(postgres(ledger, from[0]), before) : before
  }
  const flagged = servers(flags.postgres, flags.redis, ['--postgres', '--redis'])
  if (flagged !== undefined) return flagged
  const names = ['MILLRACE_DATABASE_URL', 'MILLRACE_REDIS_URL'] as const
  const set = servers(env[names[0]], env[names[1]], names)
  if (set !== undefined) return set
  const own = named.connections ?? (named.backend && { default: named.backend })
  if (own !== undefined) return { kind: 'backends', shown: `the backend of ${file}`, from: file, connections: own }
  const configured = servers(named.postgres, named.redis, [file, file])
  if (configured !== undefined) return configured
  if (env['DATABASE_URL']) return postgres(env['DATABASE_URL'], 'DATABASE_URL')
  const dir = resolve(path === null ? cwd : dirname(path), named.dataDir ?? '.millrace')
  // Looking at a folder must not start a database in it.
  if (needs.embedded || path !== null || existsSync(join(dir, `pg${PG_MAJOR}`))) {
    return { kind: 'embedded', shown: 'the embedded PostgreSQL', from: 'no store was named', dir, ...schema }
  }
  const message = `there is no store to work on: pass --postgres URL or --redis URL, set DATABASE_URL, or go to a folder with a ${CONFIG_NAMES[0]}`
  throw new CliError('NO_STORE', message)
}

/** The ledger, with Redis before it. */
function together(ledger: StoreChoice, race: RedisChoice): StoreChoice {
  if (ledger.kind !== 'postgres') return ledger
  const from = ledger.from === race.from ? ledger.from : `${ledger.from}, ${race.from}`
  return { ...ledger, race: race.server, shown: `${ledger.shown} with ${race.shown}`, from }
}

type RedisChoice = Extract<StoreChoice, { readonly kind: 'redis' }>

function redisChoice(server: string | RedisStoreOptions, from: string): RedisChoice {
  const options = typeof server === 'string' ? { url: server } : server
  const { url, cluster, sentinel } = options
  if (url !== undefined && !/^rediss?:\/\//i.test(url)) {
    const message = `${from} does not name a Redis server: write redis://user:password@host:6379/0, or rediss:// for TLS`
    throw new CliError('USAGE', message)
  }
  // What else may be wrong with its options is said by whoever connects.
  const shown = url ?? (cluster ? `the Redis Cluster ${cluster.join(', ')}` : `the Redis ${sentinel?.name ?? ''}`)
  return { kind: 'redis', shown: maskUrls(shown), from, server: options }
}

function checkUrl(url: unknown, from: string): void {
  if (typeof url === 'string' && /^postgres(?:ql)?:\/\//i.test(url)) return
  const message = `${from} does not name a PostgreSQL server: write postgres://user:password@host:5432/database`
  throw new CliError('USAGE', message)
}
