// The right to start or stop the server of a directory: a file made exclusively, with the mark of its holder.
// The lock of a dead holder is broken, one breaker at a time: between its look and its unlink a second one
// could otherwise remove the lock that the first has just taken.
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { systemClock } from '../../runtime/clock.ts'
import { markOf, presenceOf } from './processes.ts'
import type { ProcessMark } from './processes.ts'

export interface Lock {
  release(): void
}

interface LockText extends ProcessMark {
  readonly token: string
}

/** A holder that cannot be judged from here, or a file not yet written, is believed for this long. */
const BELIEF_MAX_MS = 60_000
const WRITING_MAX_MS = 2_000
const BREAKING_MAX_MS = 5_000

/** One attempt: the lock, or undefined while somebody holds it. */
export function tryLock(path: string): Lock | undefined {
  const text = JSON.stringify({ ...markOf(process.pid), token: randomBytes(8).toString('hex') } satisfies LockText)
  if (!create(path, text)) {
    const found = read(path)
    if (found !== undefined && (isHeld(path, found) || !breakLock(path, found))) return undefined
    if (!create(path, text)) return undefined
  }
  return {
    release() {
      if (read(path) === text) rmSync(path, { force: true })
    },
  }
}

/** For messages: who holds it. */
export function lockHolder(path: string): number | undefined {
  return parse(read(path) ?? '')?.pid
}

function isHeld(path: string, text: string): boolean {
  const holder = parse(text)
  if (holder === undefined) return ageMs(path) < WRITING_MAX_MS
  const presence = presenceOf(holder)
  return presence === 'running' || (presence === 'elsewhere' && ageMs(path) < BELIEF_MAX_MS)
}

function breakLock(path: string, stale: string): boolean {
  const breaker = `${path}.break`
  if (!create(breaker, '')) {
    if (ageMs(breaker) > BREAKING_MAX_MS) rmSync(breaker, { force: true })
    return false
  }
  try {
    if (read(path) !== stale) return false
    rmSync(path, { force: true })
    return true
  } finally {
    rmSync(breaker, { force: true })
  }
}

function create(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o644 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function parse(text: string): LockText | undefined {
  try {
    const value = JSON.parse(text) as Partial<LockText> | null // written by `tryLock`, or cut short by a crash
    return typeof value?.pid === 'number' ? (value as LockText) : undefined
  } catch {
    return undefined
  }
}

function ageMs(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? Infinity : systemClock.nowMs() - stat.mtimeMs
}
