// Processor time of a server with many processes, from /proc.
import { readFileSync } from 'node:fs'

/** Linux reports in hundredths of a second to every program, whatever the kernel's own clock. */
const US_PER_TICK = 10_000

/**
 * Of the process and all its children so far, also of those that have ended. Undefined where there is no
 * /proc. Differences of two calls are what counts.
 */
export function serverCpuUs(pid: number): number | undefined {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    // The parent last: it inherits the time of a child that ends between the two reads.
    const living = children.map((child) => readTicks(child).own)
    const parent = readTicks(String(pid))
    return (living.reduce((sum, ticks) => sum + ticks, 0) + parent.own + parent.inherited) * US_PER_TICK
  } catch {
    return undefined
  }
}

interface Ticks {
  readonly own: number
  /** Of children that have ended and were waited for. */
  readonly inherited: number
}

function readTicks(pid: string): Ticks {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return { own: 0, inherited: 0 }
  }
}

/** The name, second field, may hold spaces and brackets; fields are counted from its last bracket. */
export function parseStat(stat: string): Ticks {
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11)
  return { own: user + system, inherited: childrenUser + childrenSystem }
}
