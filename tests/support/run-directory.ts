// Where the servers of one test run live. The global setup makes the directory and removes it with every server in it;
// a run that was killed is cleaned up by the next one. Without a global setup each process has its own.
import { chmodSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { stopPostmaster } from '../../src/backends/embedded/postmaster.ts'
import { commandOf, isRunning, markOf, presenceOf } from '../../src/backends/embedded/processes.ts'
import type { ProcessMark } from '../../src/backends/embedded/processes.ts'

export const RUN_DIRECTORY_VARIABLE = 'MILLRACE_TEST_RUN_DIR'

const PREFIX = 'millrace-run-'
/** Nobody clears these away. */
const KEPT_PREFIX = 'millrace-kept-'
const OWNER = 'owner.json'

let own: Promise<string> | undefined

export function runDirectory(): Promise<string> {
  const given = process.env[RUN_DIRECTORY_VARIABLE]
  if (given !== undefined) return Promise.resolve(given)
  return (own ??= ownDirectory())
}

async function ownDirectory(): Promise<string> {
  const dir = await makeRunDirectory()
  // No time to wait for a shutdown here: the servers get the signal, the next run removes the files.
  process.once('exit', () => serverPids(dir).forEach((pid) => process.kill(pid, 'SIGQUIT')))
  return dir
}

/** The server user must be able to enter it, hence the mode. */
export async function makeRunDirectory(): Promise<string> {
  await removeAbandoned()
  const dir = mkdtempSync(join(tmpdir(), PREFIX))
  writeFileSync(join(dir, OWNER), JSON.stringify(markOf(process.pid)))
  chmodSync(dir, 0o755)
  return dir
}

export async function removeRunDirectory(dir: string): Promise<void> {
  await stopServers(dir)
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
}

/** Under a name that is answered, and that no later run clears away. Its servers must have been stopped. */
export function keepRunDirectory(dir: string): string {
  const kept = join(tmpdir(), `${KEPT_PREFIX}${basename(dir).slice(PREFIX.length)}`)
  renameSync(dir, kept)
  return kept
}

const LAST_LOOKS = 10
const LAST_LOOKS_MAX = 100
const LAST_LOOK_MS = 50

/** At the exit of a process, which can await nothing any more. */
export function stopServersNow(dir: string): void {
  // A server that was just being started writes down its pid a moment later.
  for (let quiet = 0, looks = 0; quiet < LAST_LOOKS && looks < LAST_LOOKS_MAX; looks++) {
    const pids = serverPids(dir)
    for (const pid of pids) quit(pid)
    quiet = pids.length === 0 ? quiet + 1 : 0
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_LOOK_MS)
  }
}

function quit(pid: number): void {
  try {
    process.kill(pid, 'SIGQUIT')
  } catch {
    // It has ended since.
  }
}

export async function stopServers(dir: string): Promise<void> {
  for (const name of readdirSync(dir)) {
    await stopPostmaster(join(dir, name, 'data'), { mode: 'immediate' })
  }
  for (const pid of serverPids(dir)) process.kill(pid, 'SIGKILL')
}

/** Every server writes its pid into a file of its own directory and names that directory in its command. */
function serverPids(dir: string): readonly number[] {
  return readdirSync(dir).flatMap((name) => {
    const home = join(dir, name)
    return [join('data', 'postmaster.pid'), 'pgbouncer.pid', 'redis.pid'].flatMap((file) => {
      const pid = Number.parseInt(read(join(home, file)) ?? '', 10)
      const isOurs = pid > 0 && isRunning(pid) && commandOf(pid)?.some((argument) => argument.includes(home))
      return isOurs ? [pid] : []
    })
  })
}

async function removeAbandoned(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue
    const dir = join(tmpdir(), name)
    const text = read(join(dir, OWNER))
    if (text === undefined) continue // being made, or somebody else's
    const owner = JSON.parse(text) as ProcessMark // written by makeRunDirectory
    if (presenceOf(owner) !== 'gone') continue
    // Another run may be at it too.
    await removeRunDirectory(dir).catch(() => undefined)
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
