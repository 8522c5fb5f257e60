// Which servers of a store answer. Needs nothing but them: this is what tells that they are gone.
import type { ServerFacts } from '../core/alert-facts.ts'
import { LIMITS } from '../core/limits.ts'
import { withoutPasswords } from '../core/secrets.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import { isServed } from '../store/diagnosis.ts'
import type { ServerState } from '../store/diagnosis.ts'
import type { Backend } from '../store/ports.ts'

/** Never rejects. Of several servers of one kind the worst counts. Null: nobody knows, and nothing is decided. */
export async function readServers(backend: Backend, clock: Clock): Promise<readonly ServerFacts[] | null> {
  if (!isServed(backend)) return [await ping(backend, clock)]
  try {
    const states = await bounded(clock, 2 * LIMITS.pingMaxMs, 'the servers', backend.servers())
    return (['postgres', 'redis'] as const).flatMap((kind) => {
      const own = states.filter((state) => state.kind === kind)
      return own.length === 0 ? [] : [worstOf(kind, own)]
    })
  } catch {
    // It promises an answer, also about a server that gives none.
    return null
  }
}

function worstOf(server: 'postgres' | 'redis', states: readonly ServerState[]): ServerFacts {
  const silent = states.find(({ pingMs }) => pingMs === null)
  const shareOf = ({ memory }: ServerState): number =>
    memory === undefined || memory.maxBytes === null ? 0 : memory.usedBytes / memory.maxBytes
  const fullest = states.reduce((most, one) => (shareOf(one) > shareOf(most) ? one : most))
  return {
    server,
    isUp: silent === undefined,
    error: silent === undefined ? null : `${silent.name}: ${silent.error ?? 'no answer'}`,
    memoryUsedBytes: fullest.memory?.usedBytes ?? null,
    memoryMaxBytes: fullest.memory?.maxBytes ?? null,
  }
}

/** A store that does not say what it is: does it answer at all? */
async function ping(backend: Backend, clock: Clock): Promise<ServerFacts> {
  const own = { server: 'store', memoryUsedBytes: null, memoryMaxBytes: null } as const
  try {
    await bounded(clock, LIMITS.pingMaxMs, 'the store', backend.schedules.due(0))
    return { ...own, isUp: true, error: null }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { ...own, isUp: false, error: withoutPasswords(message).slice(0, LIMITS.alertTextCharsMax) }
  }
}
