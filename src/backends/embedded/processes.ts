// Who a process is. A pid alone is not enough: it is reused after a crash or a reboot, and means nothing in
// another container. So a process is marked by its pid, the moment it started, and the place that counts its pids.
import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

export interface ProcessMark {
  readonly pid: number
  /** Empty where the system does not tell. */
  readonly started: string
  /** The host, and on Linux the container, in which the pid has a meaning. */
  readonly where: string
}

/** `elsewhere`: another host or container wrote the mark, and nothing can be said about it from here. */
export type Presence = 'running' | 'gone' | 'elsewhere'

export function markOf(pid: number): ProcessMark {
  return { pid, started: startOf(pid), where: HERE }
}

export function presenceOf(mark: ProcessMark): Presence {
  if (mark.where !== HERE) return 'elsewhere'
  return isRunning(mark.pid) && startOf(mark.pid) === mark.started ? 'running' : 'gone'
}

/** A zombie has ended, though its pid still answers: nobody collects it where pid 1 is not an init. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const [state] = statOf(pid)
  return state !== 'Z' && state !== 'X'
}

/** The arguments of a process; one string of all where only `ps` tells; undefined where nobody does. */
export function commandOf(pid: number): readonly string[] | undefined {
  if (process.platform === 'win32') return undefined
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return [ps(pid, 'command=')]
  } catch {
    return undefined
  }
}

const HERE = whereAmI()

function whereAmI(): string {
  try {
    if (process.platform === 'linux') return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    // No /proc: the host name has to do.
  }
  return hostname()
}

function startOf(pid: number): string {
  if (process.platform === 'win32') return ''
  try {
    // In clock ticks since boot, hence the boot as well.
    if (process.platform === 'linux') return `${statOf(pid)[19] ?? ''} ${bootId()}`
    return ps(pid, 'lstart=')
  } catch {
    return ''
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}

/** The fields of /proc/pid/stat after the name, which may itself hold spaces and brackets. */
function statOf(pid: number): readonly string[] {
  if (process.platform !== 'linux') return []
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

function ps(pid: number, field: string): string {
  const args = ['-ww', '-o', field, '-p', String(pid)]
  return execFileSync('ps', args, { encoding: 'utf8', timeout: 5_000, stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}
