// The rules of a backup: how its files are named, which of them go, and which program may read which server. Files are known
// by their name alone: whatever is not named exactly so was written by somebody else and is never touched.
import { createHash } from 'node:crypto'
import { invalidOption } from './names.ts'

const LABEL = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$/
const STAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/
const PLAIN_CHARS_MAX = 30
/** A part that was left behind by a process that died is old enough to go. */
const PART_OVER_MS = 24 * 60 * 60_000

export const BACKUP_END = '.dump'
export const CHECKSUM_END = '.sha256'
export const PART_END = '.part'

/** What tells the backups of one store from others in the same directory. */
export function checkLabel(label: unknown): string {
  if (typeof label === 'string' && LABEL.test(label)) return label
  throw invalidOption('label', label, '1-80 letters, digits and _ . - that start with a letter or digit')
}

/** `app.millrace`, `app.millrace.eu`; names that a file cannot have are shortened, and told apart by a hash. */
export function backupLabel(...names: readonly string[]): string {
  const plain = names.map((name) => name.replaceAll(/[^A-Za-z0-9_]/g, '').slice(0, PLAIN_CHARS_MAX))
  const label = plain.map((name) => name || 'x').join('.')
  if (label === names.join('.') && LABEL.test(label)) return label
  const hash = createHash('sha256').update(names.join('\0')).digest('hex').slice(0, 8)
  return `x${label}.${hash}`
}

/** `millrace-app.millrace-20260807T021530123Z.dump`, in UTC. */
export function backupName(label: string, atMs: number): string {
  return `millrace-${label}-${new Date(atMs).toISOString().replaceAll(/[-:.]/g, '')}${BACKUP_END}`
}

/** When the backup of this name was made; null: it is none of this label. */
export function backupTime(label: string, name: string): number | null {
  const start = `millrace-${label}-`
  if (!name.startsWith(start) || !name.endsWith(BACKUP_END)) return null
  const stamp = STAMP.exec(name.slice(start.length, -BACKUP_END.length))
  if (stamp === null) return null
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0] = stamp.slice(1).map(Number)
  const atMs = Date.UTC(year, month - 1, day, hour, minute, second, ms)
  // What is no date, such as a 31st of February, would come back as another one.
  return backupName(label, atMs) === name ? atMs : null
}

export interface RotationTerms {
  readonly label: string
  readonly nowMs: number
  readonly keepMs: number
}

export interface Rotation {
  /** Backups, oldest first; their checksums go with them. */
  readonly backups: readonly string[]
  /** Checksums without a backup, and parts of backups that never came to an end. */
  readonly leftovers: readonly string[]
}

/** The newest backup always stays, however old it is. Names in the future are somebody's wrong clock, and stay as well. */
export function decideRotation(names: readonly string[], { label, nowMs, keepMs }: RotationTerms): Rotation {
  const known = new Set(names)
  const made = names
    .flatMap((name) => {
      const atMs = backupTime(label, name)
      return atMs === null ? [] : [{ name, atMs }]
    })
    .toSorted((a, b) => a.atMs - b.atMs)
  const backups = made.slice(0, -1).filter(({ atMs }) => atMs < nowMs - keepMs)
  const leftovers = names.filter((name) => {
    const ends = [CHECKSUM_END, PART_END].find((end) => name.endsWith(end))
    if (ends === undefined) return false
    const backup = name.slice(0, -ends.length)
    const atMs = backupTime(label, backup)
    return atMs !== null && atMs < nowMs - PART_OVER_MS && (ends === PART_END || !known.has(backup))
  })
  return { backups: backups.map(({ name }) => name), leftovers }
}

/** `pg_dump (PostgreSQL) 15.18 (Debian 15.18-1)` → 15. */
export function toolMajor(text: string): number | null {
  const found = /\(PostgreSQL\)\s+(\d+)/.exec(text)
  return found === null ? null : Number(found[1])
}

/** 180004 → 18. */
export function serverMajor(versionNumber: number): number {
  return Math.floor(versionNumber / 10_000)
}

/** A dump of a newer server could miss what the program does not know; newer programs read older servers. */
export function canDump(tool: number, server: number): boolean {
  return tool >= server
}

/** What a dump is going to take, at most: a third more than the last one; without one, half of the tables. */
export function roomFor(lastBytes: number | null, tableBytes: number): number {
  const base = 16 * 1024 * 1024
  return base + Math.ceil(lastBytes === null ? tableBytes / 2 : lastBytes * 1.33)
}
