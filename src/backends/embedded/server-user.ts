// As whom the server runs. PostgreSQL refuses root, so root's server runs as the owner of its directory, or as
// `nobody`. That user must get to the data and to the programs; where a parent directory such as root's own
// home is closed, the server is given the right to read past it and nothing else, or the start is refused.
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess, StdioOptions } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, parse } from 'node:path'
import { MillraceError } from '../../core/errors.ts'

export interface ServerUser {
  readonly uid: number
  readonly gid: number
  readonly name: string
  /** A closed directory on the way; the user passes with CAP_DAC_READ_SEARCH. */
  readonly past?: string
}

export interface SpawnAsOptions {
  readonly stdio: StdioOptions
  readonly detached?: boolean
}

/** Undefined: as whoever we are. `paths` are what the server must reach besides the data. */
export function chooseServerUser(data: string, paths: readonly string[]): ServerUser | undefined {
  if (process.getuid?.() !== 0) {
    refuseForeignData(data)
    return undefined
  }
  const user = ownerOf(data) ?? namedUser('nobody')
  if (user === undefined) {
    throw new MillraceError(
      'EMBEDDED_FAILED',
      "PostgreSQL does not run as root, and there is no user 'nobody' in /etc/passwd to run it instead; " +
        "start this process as another user, or set `postgres: 'postgres://…'`",
    )
  }
  const past = [dirname(data), ...paths].map((path) => closedDirectory(path, user)).find((path) => path !== undefined)
  if (past === undefined) return user
  const passing = { ...user, past }
  if (canPass(passing)) return passing
  throw new MillraceError(
    'EMBEDDED_FAILED',
    `PostgreSQL does not run as root, and as ${user.name} it cannot get through ${past}; move the project out of it, ` +
      `allow the way with \`chmod o+x ${past}\`, or set \`postgres: 'postgres://…'\``,
    { details: { directory: past, user: user.name } },
  )
}

/** Runs a program of the server, away from directories that its user may not enter. */
export function spawnAs(
  user: ServerUser | undefined,
  program: string,
  args: readonly string[],
  options: SpawnAsOptions,
): ChildProcess {
  const common = { ...options, cwd: parse(program).root, env: plainEnv(), windowsHide: true }
  if (user === undefined) return spawn(program, args, common)
  if (user.past !== undefined) return spawn('setpriv', [...passFlags(user), program, ...args], common)
  return spawn(program, args, { ...common, uid: user.uid, gid: user.gid })
}

const ENV_KEPT = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot']

/** What our programs need and no more: the server's user may see it, and the variables of an application are secrets. */
export function plainEnv(): NodeJS.ProcessEnv {
  const kept = ENV_KEPT.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
  return { ...Object.fromEntries(kept), LC_ALL: 'C', TZ: 'UTC' }
}

function refuseForeignData(data: string): void {
  const owner = statSync(data, { throwIfNoEntry: false })?.uid
  if (owner === undefined || process.getuid === undefined || owner === process.getuid()) return
  throw new MillraceError(
    'EMBEDDED_FAILED',
    `${data} belongs to another user (uid ${owner}), probably because the server was once started as root; ` +
      `start it as that user again, or make it yours: \`sudo chown -R $(id -u) ${dirname(data)}\``,
  )
}

/** The owner of the data or, before there is any, of the project: who then uses it without root can go on. */
function ownerOf(data: string): ServerUser | undefined {
  const stat = statSync(data, { throwIfNoEntry: false })
  if (stat !== undefined && stat.uid !== 0) return { uid: stat.uid, gid: stat.gid, name: `uid ${stat.uid}` }
  const { uid } = statSync(dirname(data))
  // initdb wants a user with a name.
  return uid === 0 ? undefined : users().find((user) => user.uid === uid)
}

function namedUser(name: string): ServerUser | undefined {
  return users().find((user) => user.name === name)
}

function users(): readonly ServerUser[] {
  const lines = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : []
  return lines
    .map((line) => line.split(':'))
    .filter(({ length }) => length >= 4)
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
}

/** The outermost directory at or above `path` that the user may not enter. */
function closedDirectory(path: string, user: ServerUser): string | undefined {
  const above = dirname(path) === path ? undefined : closedDirectory(dirname(path), user)
  if (above !== undefined) return above
  const stat = statSync(path)
  if (!stat.isDirectory()) return undefined
  const bit = stat.uid === user.uid ? 0o100 : stat.gid === user.gid ? 0o010 : 0o001
  return (stat.mode & bit) === 0 ? path : undefined
}

/**
 * Tried: an inherited working directory or descriptor (PostgreSQL opens files by their whole path), and
 * CAP_DAC_OVERRIDE (would also allow to write). Without `no_setuid_fixup` access(2) ignores the capability.
 */
function passFlags({ uid, gid }: ServerUser): readonly string[] {
  const only = '-all,+dac_read_search'
  const capabilities = [`--inh-caps=${only}`, `--ambient-caps=${only}`, `--bounding-set=${only}`]
  return [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...capabilities, '--securebits=+no_setuid_fixup']
}

/** Linux with util-linux, and not a container that took the capability away. */
function canPass(user: ServerUser): boolean {
  const probe = spawnSync('setpriv', [...passFlags(user), 'true'], { stdio: 'ignore', timeout: 5_000 })
  return probe.status === 0
}
