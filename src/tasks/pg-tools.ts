// Which pg_dump is used: the one of the folder that was named, or the first one that can read this server, on the PATH or
// where packages of PostgreSQL put each version.
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { canDump, toolMajor } from '../core/backup.ts'
import { MillraceError } from '../core/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import { runTool } from './run-tool.ts'

export interface PgTools {
  readonly pgDump: string
  readonly pgRestore: string
  readonly major: number
}

export interface FindTools {
  /** The folder of pg_dump and pg_restore, if somebody named it. */
  readonly bin: string | undefined
  readonly serverMajor: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly clock: Clock
}

const PATH_FOLDERS_MAX = 100

export async function findTools(asked: FindTools): Promise<PgTools> {
  const { bin, serverMajor, env } = asked
  const path = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const folders = bin === undefined ? [...path.slice(0, PATH_FOLDERS_MAX), ...packaged(serverMajor)] : [bin]
  let old: number | undefined
  for (const folder of new Set(folders)) {
    const found = await toolsIn(folder, asked)
    if (found === null) continue
    if (canDump(found.major, serverMajor)) return found
    old = Math.max(old ?? 0, found.major)
  }
  const install = `install the client programs of PostgreSQL ${serverMajor} (Debian: postgresql-client-${serverMajor}), or name their folder with bin`
  if (old !== undefined) {
    const message = `pg_dump is of PostgreSQL ${old} and the server of PostgreSQL ${serverMajor}: an older pg_dump cannot read a newer server; ${install}`
    throw new MillraceError('BACKUP_TOOL_OLD', message, { details: { tool: old, server: serverMajor } })
  }
  const where = bin === undefined ? 'on the PATH' : `in ${bin}`
  const message = `pg_dump and pg_restore were not found ${where}, and the server is of PostgreSQL ${serverMajor}: ${install}; the package of the embedded server does not bring them`
  throw new MillraceError('BACKUP_TOOL_MISSING', message, { details: { server: serverMajor } })
}

/** Debian, Red Hat, Homebrew. */
function packaged(major: number): readonly string[] {
  return [
    `/usr/lib/postgresql/${major}/bin`,
    `/usr/pgsql-${major}/bin`,
    `/opt/homebrew/opt/postgresql@${major}/bin`,
    `/usr/local/opt/postgresql@${major}/bin`,
  ]
}

/** Null: they are not both there, or do not run. */
async function toolsIn(folder: string, { env, signal, clock }: FindTools): Promise<PgTools | null> {
  const [pgDump, pgRestore] = [join(folder, 'pg_dump'), join(folder, 'pg_restore')]
  try {
    await Promise.all([access(pgDump, constants.X_OK), access(pgRestore, constants.X_OK)])
    const { code, stdout } = await runTool({ program: pgDump, args: ['--version'], env, signal, clock })
    const major = code === 0 ? toolMajor(stdout) : null
    return major === null ? null : { pgDump, pgRestore, major }
  } catch {
    return null
  }
}
