// The log of a Redis server, written anew when the benchmark says so. Redis does it by itself once the log has doubled, and the
// child that does takes half of this machine from whatever is being measured at that moment.
import { setTimeout as pause } from 'node:timers/promises'
import { infoField, isRewriting } from './redis-info.ts'

const REWRITE_MAX_MS = 60_000
const REWRITE_POLL_MS = 20

export type AskRedis = (...command: readonly [name: string, ...values: string[]]) => Promise<unknown>

/** Resolves when it is written; at once where the server keeps none. */
export async function rewriteLog(ask: AskRedis): Promise<void> {
  const persistence = async (): Promise<string> => String(await ask('INFO', 'persistence'))
  if (infoField(await persistence(), 'aof_enabled') === '0') return
  const deadlineMs = performance.now() + REWRITE_MAX_MS
  const untilDone = async (): Promise<void> => {
    while (isRewriting(await persistence())) {
      if (performance.now() > deadlineMs) throw new Error('Redis does not finish rewriting its log')
      await pause(REWRITE_POLL_MS)
    }
  }
  // One that Redis began by itself is refused a second.
  await untilDone()
  await ask('BGREWRITEAOF')
  await untilDone()
}
