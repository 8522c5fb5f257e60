// A server whose data lies on a disk of its own, which a test can fill and empty: a tmpfs of fixed size. Needs root.
import { execFileSync } from 'node:child_process'
import { chownSync, chmodSync, closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { TestPostgres } from '../../support/postgres-server.ts'

export interface SmallDisk {
  /** Leaves no byte. */
  fill(): void
  free(): void
  /** The server must be stopped. Its data is then where it was, as it was before. */
  unmount(): void
}

const PIECE = Buffer.alloc(64 * 1024, 1)

/** Stops the server, moves its data to a disk of so many megabytes, and starts it again. */
export async function moveToSmallDisk(server: TestPostgres, megabytes: number): Promise<SmallDisk> {
  if (process.getuid?.() !== 0) throw new Error('the test of a full disk mounts a tmpfs, so it must be run as root')
  await server.stop()
  const { dataDir } = server
  const aside = `${dataDir}.aside`
  const { uid, gid, mode } = statSync(dataDir)
  renameSync(dataDir, aside)
  mkdirSync(dataDir)
  let isMounted = false
  const unmount = (): void => {
    if (!isMounted) return
    isMounted = false
    process.off('exit', unmount)
    // Lazily: whatever still has a file open there does not keep the mount.
    execFileSync('umount', ['--lazy', dataDir])
    rmSync(dataDir, { recursive: true, force: true })
    renameSync(aside, dataDir)
  }
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'millrace-test-disk', dataDir])
  isMounted = true
  process.on('exit', unmount)
  try {
    chownSync(dataDir, uid, gid)
    chmodSync(dataDir, mode)
    execFileSync('cp', ['-a', `${aside}/.`, dataDir])
    await server.start()
  } catch (error) {
    unmount()
    throw error
  }
  const ballast = join(dataDir, 'ballast')
  return {
    fill: () => fillUp(ballast),
    free: () => rmSync(ballast, { force: true }),
    unmount,
  }
}

function fillUp(path: string): void {
  const file = openSync(path, 'a')
  try {
    for (let size = PIECE.length; size > 0;) {
      try {
        // A piece that does not fit as a whole is written in part; the next one fails.
        writeSync(file, PIECE, 0, size)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error // of node:fs
        size >>= 1
      }
    }
  } finally {
    closeSync(file)
  }
}
