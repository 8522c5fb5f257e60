// What lies where in the directory of an embedded server.
import { chownSync, mkdirSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** The data directory is named after it: another major version cannot read the files. */
export const PG_MAJOR = 18

export const ROLE = 'millrace'
export const DATABASE = 'millrace'

export interface Files {
  readonly dir: string
  readonly data: string
  readonly log: string
  /** Mode 0600. */
  readonly password: string
  /** The port of the last start, so that an address stays good over restarts. */
  readonly port: string
  readonly state: string
  readonly lock: string
}

/** Makes the directory if need be. Its real path, so that all users mean the same whatever links they came by. */
export function openFiles(path: string): Files {
  const created = mkdirSync(resolve(path), { recursive: true })
  const dir = realpathSync(path)
  if (created !== undefined && process.getuid?.() === 0) {
    // What root makes in somebody's project should be theirs.
    const { uid, gid } = statSync(dirname(created))
    chownSync(dir, uid, gid)
  }
  try {
    writeFileSync(join(dir, '.gitignore'), '*\n', { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return {
    dir,
    data: join(dir, `pg${PG_MAJOR}`),
    log: join(dir, 'server.log'),
    password: join(dir, 'password'),
    port: join(dir, 'port'),
    state: join(dir, 'state.json'),
    lock: join(dir, 'lock'),
  }
}
