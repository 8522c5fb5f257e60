// A command at work: its Millrace, opened when the command begins and stopped however it ends.
import { postgres } from '../backends/postgres/backend.ts'
import { createMillrace } from '../millrace.ts'
import type { Millrace } from '../millrace.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Backend } from '../store/ports.ts'
import { openServers } from '../stores.ts'
import { describeError } from './cli-error.ts'
import type { LoadModule } from './config-file.ts'
import { EXIT, exitOf } from './exit-codes.ts'
import type { CliIo } from './io.ts'
import { createLogLines } from './log-lines.ts'
import { createOutput } from './output.ts'
import type { Output } from './output.ts'
import { createReads } from './reads.ts'
import type { Reads } from './reads.ts'
import type { OpenMigrator, StartEmbedded } from './servers.ts'
import { readSettings } from './settings.ts'
import type { GlobalFlags, PostgresServer, Settings, SettingsNeeds, StoreChoice } from './settings.ts'

/** What a run of the command line stands on; tests pass their own. */
export interface CliParts {
  readonly io: CliIo
  readonly clock: Clock
  readonly load?: LoadModule
  readonly openMigrator: OpenMigrator
  readonly startEmbedded: StartEmbedded
}

export interface Session {
  readonly mill: Millrace
  readonly connections: Readonly<Record<string, Backend>>
  readonly reads: Reads
  readonly settings: Settings
  readonly out: Output
}

/** A person waits for the answer; a worker has the longer default. */
const STORE_TIMEOUT = '10s'
/** One who only looks must not change the schema, and needs few connections. */
const LOOKING: Partial<PostgresServer> = { migrate: 'check', poolMax: 4, applicationName: 'millrace cli' }

export function outputOf({ io, clock }: CliParts, flags: GlobalFlags): Output {
  return createOutput(io, { json: flags.json ?? false, color: flags.color ?? true, clock })
}

/** For commands that look and act once. */
export async function withMill(
  parts: CliParts,
  flags: GlobalFlags,
  act: (session: Session) => Promise<number | void>,
  needs: SettingsNeeds = {},
): Promise<number> {
  const { io, clock } = parts
  const settings = await readSettings(io, flags, needs, parts.load)
  const out = outputOf(parts, flags)
  const logger = createLogLines(io, { json: out.json, level: 'warn', clock })
  const opened = await openMill(parts, settings, { logger, storeTimeout: STORE_TIMEOUT }, LOOKING)
  const { mill, connections } = opened
  let code: number | void
  try {
    code = await act({ mill, connections, settings, out, reads: createReads(connections, clock) })
  } catch (error) {
    // What went wrong first is what is to be told.
    await opened.stop().catch(() => undefined)
    throw error
  }
  await opened.stop()
  return code ?? EXIT.done
}

export interface OpenedMill extends Pick<OpenedStore, 'connections' | 'url' | 'dir'> {
  readonly mill: Millrace
  /** Whatever still runs is given back at once. */
  stop(): Promise<void>
}

export async function openMill(
  parts: Pick<CliParts, 'startEmbedded'>,
  settings: Settings,
  defaults: { readonly logger: Logger; readonly storeTimeout?: typeof STORE_TIMEOUT },
  looking: Partial<PostgresServer> = {},
): Promise<OpenedMill> {
  const { release, ...store } = await openStore(parts, settings, defaults.logger, looking)
  try {
    const mill = await createMillrace({ ...defaults, ...settings.options, connections: store.connections })
    return {
      mill,
      ...store,
      async stop() {
        try {
          await mill.stop({ deadline: 0 })
        } finally {
          await release()
        }
      },
    }
  } catch (error) {
    await release()
    throw placed(error, settings.store)
  }
}

/** Whoever has three databases wants to know which one did not answer, and who named it. */
function placed(error: unknown, { shown, from }: StoreChoice): unknown {
  const { code, message } = describeError(error)
  if (exitOf(code) !== EXIT.unavailable) return error
  return Object.assign(new Error(`${shown} (${from}): ${message}`, { cause: error }), { code })
}

interface OpenedStore {
  readonly connections: Readonly<Record<string, Backend>>
  /** With its password. */
  readonly url?: string
  /** Where the embedded server keeps its data. */
  readonly dir?: string
  readonly release: () => Promise<void>
}

async function openStore(
  parts: Pick<CliParts, 'startEmbedded'>,
  { store }: Settings,
  logger: Logger,
  looking: Partial<PostgresServer>,
): Promise<OpenedStore> {
  const nothing = (): Promise<void> => Promise.resolve()
  if (store.kind === 'backends') return { connections: store.connections, release: nothing }
  if (store.kind === 'postgres') {
    const backend = openServers({ ...store.server, ...looking }, store.race, logger)
    return { connections: named(backend), url: store.server.url, release: nothing }
  }
  if (store.kind === 'redis') {
    const { applicationName } = looking
    const own = applicationName === undefined ? {} : { applicationName }
    return { connections: named(openServers(undefined, { ...store.server, ...own }, logger)), release: nothing }
  }
  const server = await parts.startEmbedded({ dir: store.dir, logger })
  const { url, dir } = server
  // The first look at a new database is allowed to make it: it is nobody else's.
  const own = { url, ...looking, migrate: 'auto', ...(store.schema !== undefined && { schema: store.schema }) } as const
  return { connections: { default: postgres({ ...own, logger }) }, url, dir, release: () => server.stop() }
}

/** A server was named, so there is a backend. */
function named(backend: Backend | undefined): Readonly<Record<string, Backend>> {
  return backend === undefined ? {} : { default: backend }
}
