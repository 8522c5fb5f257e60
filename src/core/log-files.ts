// Which files of a log directory may go: those that are named like a log, and that nobody has written to for a while.

/** `worker.log`, `worker.log.1`, `worker.log.2.gz`, `worker-2026-08-07.log`, `worker.log.20260807.gz`. */
const NAME = /^[A-Za-z0-9][\w.-]{0,150}$/
const ENDS = /\.log(?:[.-][\d-]{1,20})?(?:\.(?:gz|zst|bz2|xz))?$/

export function isLogName(name: string): boolean {
  return NAME.test(name) && ENDS.test(name)
}

export interface LogFile {
  readonly name: string
  readonly isFile: boolean
  readonly modifiedAtMs: number
}

export function isOverLog({ name, isFile, modifiedAtMs }: LogFile, nowMs: number, keepMs: number): boolean {
  return isFile && isLogName(name) && modifiedAtMs < nowMs - keepMs
}
