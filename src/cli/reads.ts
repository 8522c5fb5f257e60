// What operators ask and the client does not answer: who works, how much of a limit is used, what time the store
// has. Read from the backends themselves.
import type { SeenWorker } from '../observability/crew.ts'
import type { SeenDispatch } from '../observability/health.ts'
import type { Clock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { isDiagnosable, isDispatching } from '../store/diagnosis.ts'
import type { Check } from '../store/diagnosis.ts'
import type { LimitUse } from '../store/limit-store.ts'
import type { NoteStore } from '../store/note-store.ts'
import type { Backend } from '../store/ports.ts'
import { createFleet } from '../supervisor/fleet.ts'
import type { SupervisorRecord } from '../supervisor/fleet.ts'

export interface StoreClock {
  readonly nowMs: number
  /** How far the clock of this process is ahead of the store's; half the round trip is the error. */
  readonly skewMs: number
  readonly roundTripMs: number
}

export interface Reads {
  workers(): Promise<readonly SeenWorker[]>
  /** Of a whole queue, or of one key of it. */
  limitUse(connection: string, queue: string, key?: string): Promise<LimitUse | null>
  clock(connection?: string): Promise<StoreClock | null>
  /** Of stores that hand out jobs through Redis; empty where there is none. */
  dispatching(): Promise<readonly SeenDispatch[]>
  /** Those whose records are in the default store. */
  supervisors(): Promise<readonly SupervisorRecord[]>
  /** The checks that backends bring themselves. */
  checks(): Promise<readonly Check[]>
  /** What is kept beside the jobs: of the default connection. */
  notes(): NoteStore
}

export function createReads(connections: Readonly<Record<string, Backend>>, clock: Clock): Reads {
  return {
    async workers() {
      const lists = Object.entries(connections).map(async ([connection, backend]) =>
        (await backend.workers.list()).map((worker) => ({ ...worker, connection })),
      )
      return (await Promise.all(lists)).flat()
    },
    limitUse: async (connection, queue, key) => (await connections[connection]?.limits.inspect(queue, key)) ?? null,
    async clock(connection = 'default') {
      const backend = connections[connection]
      if (backend === undefined) return null
      const [sentMs, localMs] = [clock.monoMs(), clock.nowMs()]
      const { nowMs } = await backend.schedules.due(0)
      const roundTripMs = clock.monoMs() - sentMs
      return { nowMs, roundTripMs, skewMs: localMs + roundTripMs / 2 - nowMs }
    },
    async dispatching() {
      const lists = Object.entries(connections).map(async ([connection, backend]) =>
        isDispatching(backend) ? (await backend.dispatching()).map((one) => ({ ...one, connection })) : [],
      )
      return (await Promise.all(lists)).flat()
    },
    async supervisors() {
      const notes = connections['default']?.notes
      return notes === undefined ? [] : createFleet({ notes, runtime: { logger: silentLogger } }).list()
    },
    async checks() {
      const own = Object.entries(connections).map(async ([name, backend]): Promise<readonly Check[]> => {
        if (!isDiagnosable(backend)) return []
        // One that cannot even say what to check is a finding too.
        return backend
          .diagnose()
          .catch((error: unknown) => [{ name: `${name} backend`, run: () => Promise.reject(error) }])
      })
      return (await Promise.all(own)).flat()
    },
    notes() {
      const own = connections['default']
      if (own === undefined) throw new TypeError('there is no default connection')
      return own.notes
    },
  }
}
