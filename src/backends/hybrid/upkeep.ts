// The services of the hybrid, which maintenance starts with its own: relay, reconcile, the Redis half of reaping, and a look
// at the memory of Redis. One leader acts, to save work; two are harmless. A leader whose own Redis fails lets others lead.
import { bounded } from '../../runtime/bounded.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createLoop } from '../../runtime/service.ts'
import type { Loop, Service } from '../../runtime/service.ts'
import { readyTopic } from '../../store/wakeups.ts'
import { ConfigSync } from './config-sync.ts'
import type { Hybrid } from './hybrid.ts'
import type { DispatchRow } from './ports.ts'
import { Reconciler } from './reconcile.ts'
import { reap } from './reaper.ts'
import { relayOnce } from './relay.ts'

const RELAY_MIN_MS = 10
/** A lane is full and rows wait: it is drained within this order of time. */
const RELAY_BUSY_MS = 20
const TURNS_MAX = 50
/** More jobs are to go back than one pass moves: time for others in between. */
const RECONCILE_BUSY_MS = 50
const MEMORY_MS = 5_000
const COUNTS_MS = 5_000
/** From here on the window shrinks; at the second nothing more goes to Redis. */
const MEMORY_TIGHT = 0.8
const MEMORY_FULL = 0.95

export function createUpkeep(hybrid: Hybrid, isLeading: () => boolean): readonly Service[] {
  const { times, runtime } = hybrid
  const reconciler = new Reconciler(hybrid)
  const mayLead = (): boolean => isLeading() && tokenRows(hybrid).every(({ queue }) => !hybrid.watch.isOpen(queue))
  const reconcile = async (): Promise<number> => {
    if (!mayLead()) return times.reconcileMs
    await hybrid.epochs.refresh()
    return (await reconciler.pass(hybrid.view.rows())) ? RECONCILE_BUSY_MS : times.reconcileMs
  }
  const reaping = async (): Promise<number> => {
    if (mayLead()) for (const { queue } of tokenRows(hybrid)) await reap(hybrid, queue)
    return times.reaperMs
  }
  const tellCounts = async (): Promise<number> => {
    await hybrid.tellCounts()
    return COUNTS_MS
  }
  return [
    createRelay(hybrid, runtime, isLeading),
    createLoop({ name: 'reconcile', runtime, pass: reconcile }),
    createLoop({ name: 'reaper', runtime, pass: reaping }),
    createLoop({ name: 'memory watch', runtime, pass: () => watchMemory(hybrid) }),
    ...(hybrid.eye === undefined ? [] : [createLoop({ name: 'token counts', runtime, pass: tellCounts })]),
  ]
}

function tokenRows(hybrid: Hybrid): readonly DispatchRow[] {
  return [...hybrid.view.rows()].filter(({ queue }) => hybrid.view.tag(queue) !== null)
}

function createRelay(hybrid: Hybrid, runtime: Runtime, isLeading: () => boolean): Service {
  const { times } = hybrid
  const pipes = new Map<string, string>()
  const sync = new ConfigSync(hybrid)
  const hinted = new Set<string>()
  const listening = new Map<string, () => void>()
  let fullPassMs = -Infinity
  let waitMs = RELAY_MIN_MS

  const listen = (loop: Loop, queue: string): void => {
    if (listening.has(queue)) return
    const stop = hybrid.store.wakeups.listen([readyTopic(queue)], () => {
      hinted.add(queue)
      loop.wake()
    })
    listening.set(queue, stop)
  }

  async function pass(): Promise<number> {
    if (!isLeading()) return times.relayMaxMs / 4
    const nowMs = runtime.clock.monoMs()
    const isFull = nowMs - fullPassMs >= waitMs
    if (isFull) {
      fullPassMs = nowMs
      await hybrid.epochs.refresh()
      for (const row of tokenRows(hybrid)) {
        listen(loop, row.queue)
        await sync.tell(row)
      }
    }
    const queues = isFull ? tokenRows(hybrid).map(({ queue }) => queue) : [...hinted]
    hinted.clear()
    let hasBacklog = false
    for (const queue of queues) hasBacklog = (await drain(queue)) || hasBacklog
    waitMs = hasBacklog ? RELAY_BUSY_MS : Math.min(waitMs * 2, times.relayMaxMs)
    return waitMs
  }

  /** Until nothing is left or nothing fits. Answers whether rows remain. */
  async function drain(queue: string): Promise<boolean> {
    for (let turn = 0; turn < TURNS_MAX; turn++) if (!(await relayOnce(hybrid, queue, pipes))) break
    const tag = hybrid.view.tag(queue)
    return tag !== null && (hybrid.lanes.get(queue, tag)?.backlog.some(Boolean) ?? false)
  }

  const loop = createLoop({ name: 'relay', runtime, pass, backoffMinMs: 100, backoffMaxMs: 10_000 })
  return {
    start: () => loop.start(),
    async stop() {
      for (const stop of listening.values()) stop()
      listening.clear()
      await loop.stop()
    },
  }
}

/** At 80 % of its memory the window shrinks, so that Redis never has to refuse or to evict. */
async function watchMemory(hybrid: Hybrid): Promise<number> {
  const { used, max } = await bounded(hybrid.runtime.clock, hybrid.times.raceMs, 'Redis', hybrid.race.memory())
  const ratio = max === 0 ? 0 : used / max
  const share = Math.min(Math.max((MEMORY_FULL - ratio) / (MEMORY_FULL - MEMORY_TIGHT), 0), 1)
  if (share < 1 && hybrid.windowShare === 1) {
    hybrid.runtime.logger.warn(
      { used, max },
      'the memory of Redis is 80 % full: fewer jobs wait in it, more in PostgreSQL',
    )
  }
  hybrid.windowShare = share
  return MEMORY_MS
}
