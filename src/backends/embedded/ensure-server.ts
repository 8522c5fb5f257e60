// One server per directory: attach to the one that runs, or be the one that starts it. Starting and stopping
// happen under the lock; attaching needs none, because the guardian greets only while it is not stopping.
import { readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { sleep, systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Binaries } from './binaries.ts'
import { BEGUN_PREFIX, ensureCluster } from './cluster.ts'
import type { Files } from './files.ts'
import { SOCKET_PREFIX, holdGuardian, launchGuardian } from './guardian-client.ts'
import type { GuardedServer, Guardian, Hold } from './guardian-client.ts'
import { lockHolder, tryLock } from './lock.ts'
import type { Lock } from './lock.ts'
import { settledPostmaster } from './postmaster.ts'
import { presenceOf } from './processes.ts'
import { openLog } from './server-log.ts'
import { chooseServerUser } from './server-user.ts'
import { startPostmaster, startFailed } from './start-postmaster.ts'
import { beatOf, readState, removeState, writeState } from './state.ts'

export interface Place {
  readonly files: Files
  readonly findBinaries: () => Promise<Binaries>
  readonly logger: Logger
  readonly lingerMs: number
  readonly timeoutMs: number
}

export interface Session {
  readonly port: number
  readonly hold: Hold
  /** Resolves when other processes can attach; the server takes connections already before. */
  readonly settled: Promise<void>
}

const LOCK_POLL_MS = 10
/** Twelve beats of a guardian. */
const FOREIGN_WATCH_MS = 3_000
const FOREIGN_POLL_MS = 100

export async function ensureServer(place: Place): Promise<Session> {
  const deadlineMs = systemClock.monoMs() + place.timeoutMs
  while (systemClock.monoMs() < deadlineMs) {
    const attached = await attach(place)
    if (attached !== undefined) return attached
    const lock = tryLock(place.files.lock)
    if (lock === undefined) {
      await sleep(systemClock, LOCK_POLL_MS)
      continue
    }
    try {
      // Somebody may have finished between our look and our lock.
      const late = await attach(place)
      if (late === undefined) return await start(place, lock, deadlineMs)
      lock.release()
      return late
    } catch (error) {
      lock.release()
      throw error
    }
  }
  throw startFailed(
    `process ${lockHolder(place.files.lock) ?? 'unknown'} has been starting or stopping it for ${place.timeoutMs} ms; ` +
      `look at that process and at ${place.files.log}`,
    place.files,
  )
}

async function attach({ files }: Place): Promise<Session | undefined> {
  const state = readState(files.state)
  if (state === undefined) return undefined
  const hold = await holdGuardian(state)
  if (hold === undefined) return undefined
  if (presenceOf(state.guardian) !== 'elsewhere') return { port: state.port, hold, settled: Promise.resolve() }
  hold.release()
  throw usedElsewhere(files)
}

/** A server without a guardian, which died, is given a new one; otherwise server and guardian start together. */
async function start(place: Place, lock: Lock, deadlineMs: number): Promise<Session> {
  const { files, lingerMs } = place
  await refuseOtherContainers(files)
  const binaries = await place.findBinaries()
  const native = dirname(dirname(binaries.postgres))
  const user = chooseServerUser(files.data, [dirname(binaries.postgres), native])
  if (user?.past !== undefined) {
    const fields = { directory: user.past, user: user.name }
    place.logger.warn(fields, 'the embedded PostgreSQL of root may read all files: its directory is closed to others')
  }
  const log = openLog(files.log, user)
  let guardian: Guardian | undefined
  try {
    const running = await settledPostmaster(files.data, deadlineMs)
    removeRemains(files.dir)
    // It names a guardian that is dead or replaced; the new one would think that it was replaced itself.
    removeState(files.state)
    if (running === undefined) await ensureCluster({ ...files, binaries, user, log })
    guardian = launchGuardian({ files, lingerMs, logFd: log.fd, pgCtl: binaries.pgCtl })
    const server = running ?? (await startPostmaster({ files, postgres: binaries.postgres, user, log, deadlineMs }))
    return { port: server.port, hold: guardian.hold, settled: settle(files, guardian, server, lock) }
  } catch (error) {
    guardian?.hold.release() // it finds that it has no users, stops what may have started, and goes
    throw error
  } finally {
    log.close()
  }
}

async function settle(files: Files, guardian: Guardian, server: GuardedServer, lock: Lock): Promise<void> {
  try {
    await guardian.listening
    writeState(files.state, guardian.state(server))
  } finally {
    lock.release()
  }
}

/** Of processes that died: data half made, sockets that nobody listens on. */
function removeRemains(dir: string): void {
  for (const name of readdirSync(dir)) {
    if (!name.startsWith(BEGUN_PREFIX) && !name.startsWith(SOCKET_PREFIX)) continue
    try {
      rmSync(join(dir, name), { recursive: true, force: true })
    } catch {
      // An initdb without its parent is still at it; the next start will remove it.
    }
  }
}

/** Its pids mean nothing here, so look whether its guardian still touches the state. */
async function refuseOtherContainers(files: Files): Promise<void> {
  const state = readState(files.state)
  if (state === undefined || presenceOf(state.guardian) !== 'elsewhere') return
  const first = beatOf(files.state)
  const deadlineMs = systemClock.monoMs() + FOREIGN_WATCH_MS
  while (systemClock.monoMs() < deadlineMs) {
    await sleep(systemClock, FOREIGN_POLL_MS)
    const now = beatOf(files.state)
    if (now === undefined) return
    if (now !== first) throw usedElsewhere(files)
  }
}

function usedElsewhere({ dir }: Files): MillraceError {
  return new MillraceError(
    'EMBEDDED_FAILED',
    `the embedded PostgreSQL in ${dir} runs in another container or on another host; ` +
      "give each its own directory, or let them share a server with `postgres: 'postgres://…'`",
  )
}
