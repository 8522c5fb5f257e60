// The files of a backup: written under another name, forced to the disk, checked, and only then given their own; a checksum
// beside each, as `sha256sum --check` reads it; and rotation, which removes nothing that is not named as ours.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, stat, statfs, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { backupTime, CHECKSUM_END, decideRotation, PART_END } from '../core/backup.ts'
import type { RotationTerms } from '../core/backup.ts'

/** Others on the machine must not read payloads. */
const DIR_MODE = 0o700
const FILE_MODE = 0o600

export async function makeDir(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: DIR_MODE })
}

export async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}

/** Of the newest backup of this label; null: there is none. */
export async function lastBackupBytes(dir: string, label: string): Promise<number | null> {
  const names = (await readdir(dir)).filter((name) => backupTime(label, name) !== null)
  const [newest] = names.toSorted((a, b) => (backupTime(label, b) ?? 0) - (backupTime(label, a) ?? 0))
  return newest === undefined ? null : (await stat(join(dir, newest))).size
}

/** Where it is written until it is whole. Made here, so that nobody else may read it from the first byte on. */
export async function openPart(dir: string, name: string): Promise<string> {
  const part = join(dir, `${name}${PART_END}`)
  await writeFile(part, '', { mode: FILE_MODE, flag: 'wx' })
  return part
}

export async function removeQuietly(path: string): Promise<void> {
  await unlink(path).catch(() => undefined)
}

/**
 * The checksum first: a crash in between leaves one without a backup, which rotation removes, and never a backup that cannot
 * be checked.
 */
export async function commitBackup(dir: string, name: string, part: string, sha256: string): Promise<void> {
  await syncFile(part)
  const sum = join(dir, `${name}${CHECKSUM_END}`)
  await writeFile(sum, `${sha256}  ${name}\n`, { mode: FILE_MODE })
  await syncFile(sum)
  await rename(part, join(dir, name))
  await syncFile(dir)
}

export async function hashFile(path: string, signal: AbortSignal): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path, { signal }) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { sha256: hash.digest('hex'), bytes }
}

export interface Rotated {
  readonly removed: number
  readonly bytes: number
  readonly warnings: readonly string[]
}

/** `isDryRun`: counts only. */
export async function rotate(dir: string, terms: RotationTerms, isDryRun: boolean): Promise<Rotated> {
  const { backups, leftovers } = decideRotation(await readdir(dir), terms)
  const warnings: string[] = []
  let [removed, bytes] = [0, 0]
  for (const name of [...backups, ...leftovers]) {
    try {
      const { size } = await stat(join(dir, name))
      if (!isDryRun) {
        await unlink(join(dir, name))
        if (backups.includes(name)) await removeQuietly(join(dir, `${name}${CHECKSUM_END}`))
      }
      if (backups.includes(name)) removed += 1
      bytes += size
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') warnings.push(`${name}: ${(error as Error).message}`)
    }
  }
  return { removed, bytes, warnings }
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
