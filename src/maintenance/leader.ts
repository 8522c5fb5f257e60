// One process does the periodic work; a lease in the store says which. Two leaders are harmless, since
// everything they do is guarded: the lease only saves work.
//
// A process may be a bad leader, because it cannot reach what the others can. It gives the lead up and stays away for half a
// ttl, in which everybody else has asked; when nobody came it leads again, and gives way once more some time later.
import { bounded } from '../runtime/bounded.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { WorkerStore } from '../store/worker-store.ts'

const RESIGN_MS = 2_000
/** In ttls: how long a bad leader whom nobody has relieved goes on. */
const RELUCTANT_TTLS = 10

export interface LeaderOptions {
  readonly runtime: Runtime
  readonly workers: WorkerStore
  readonly role: string
  readonly ttlMs: number
  /** False: others had better lead. Default: never. */
  readonly mayLead?: () => boolean
}

export interface Leader extends Service {
  isLeading(): boolean
  /** Of the lead that this process has, or had last; rises with every change of holder. 0: it never led. */
  term(): number
}

export function createLeader({ runtime, workers, role, ttlMs, mayLead = () => true }: LeaderOptions): Leader {
  const holder = runtime.newId()
  let leadsUntilMs = -Infinity
  let gaveWayMs = -Infinity
  let term = 0

  async function resign(): Promise<void> {
    if (leadsUntilMs === -Infinity) return
    leadsUntilMs = -Infinity
    // Best effort: without it the next leader waits for the lease to lapse.
    await bounded(runtime.clock, RESIGN_MS, 'resigning', workers.resign(role, holder)).catch(() => undefined)
  }

  async function pass(): Promise<number> {
    const startedMs = runtime.clock.monoMs()
    if (mayLead()) gaveWayMs = -Infinity
    else if (startedMs - gaveWayMs >= RELUCTANT_TTLS * ttlMs) {
      gaveWayMs = startedMs
      await resign()
    }
    if (startedMs - gaveWayMs < ttlMs / 2) return ttlMs / 8
    const reply = await workers.lead({ role, holder, ttlMs })
    // Trusted a little shorter than the store keeps it, counted from before the call.
    leadsUntilMs = reply.held ? startedMs + ttlMs * 0.8 : -Infinity
    if (reply.held) term = reply.term
    return (ttlMs / 4) * (0.75 + runtime.random() / 2)
  }

  const loop = createLoop({ name: `leader of ${role}`, runtime, pass, backoffMaxMs: ttlMs / 4 })
  return {
    async start() {
      // Asked once before anything else, so that the services of the first process work from the first moment.
      await pass().catch((error: unknown) =>
        runtime.logger.warn({ role, error }, 'the lead could not be asked for yet'),
      )
      await loop.start()
    },
    async stop() {
      await loop.stop()
      await resign()
    },
    isLeading: () => runtime.clock.monoMs() < leadsUntilMs,
    term: () => term,
  }
}
