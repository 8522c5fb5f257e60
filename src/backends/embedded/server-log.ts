// The log file of a server: what initdb and the server said, for people and for error messages.
import { chownSync, closeSync, openSync, readSync, renameSync, statSync } from 'node:fs'
import type { ServerUser } from './server-user.ts'

export interface ServerLog {
  readonly path: string
  /** To be inherited by the programs that write it. */
  readonly fd: number
  /** What was written since the log was opened or marked. */
  text(): string
  mark(): void
  close(): void
}

/** Then a new file begins; the one before is kept. */
const SIZE_MAX = 8 * 1024 * 1024
const TEXT_MAX = 64 * 1024

export function openLog(path: string, user?: ServerUser): ServerLog {
  const size = sizeOf(path)
  if (size > SIZE_MAX) renameSync(path, `${path}.1`)
  const fd = openSync(path, 'a', 0o600)
  if (user !== undefined) chownSync(path, user.uid, user.gid)
  let from = sizeOf(path)
  return {
    path,
    fd,
    text: () => readEnd(path, from),
    mark: () => void (from = sizeOf(path)),
    close: () => closeSync(fd),
  }
}

/** The end of a text, for an error message. */
export function lastLines(text: string, count = 15): string {
  return text.trimEnd().split('\n').slice(-count).join('\n')
}

function readEnd(path: string, from: number): string {
  const start = Math.max(from, sizeOf(path) - TEXT_MAX)
  const buffer = Buffer.alloc(TEXT_MAX)
  const fd = openSync(path, 'r')
  try {
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, TEXT_MAX, start))
  } finally {
    closeSync(fd)
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
