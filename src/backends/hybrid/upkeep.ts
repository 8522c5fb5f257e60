// The services of the hybrid, which maintenance starts with its own: relay, reconcile and the Redis half of
// reaping. One leader acts, to save work; two are harmless. A leader whose own Redis fails lets others lead; as
// long as there is nobody else it does what can be done: queues in mode ledger, and those of another Redis.
import type { Runtime } from '../../runtime/runtime.ts'
import { createLoop } from '../../runtime/service.ts'
import type { Loop, Service } from '../../runtime/service.ts'
import { readyTopic } from '../../store/wakeups.ts'
import { ConfigSync } from './config-sync.ts'
import { eachQueue } from './each-queue.ts'
import type { Hybrid } from './hybrid.ts'
import { Reconciler } from './reconcile.ts'
import { reapAll } from './reaper.ts'
import { relayOnce } from './relay.ts'

const RELAY_MIN_MS = 10
/** A lane is full and rows wait: it is drained within this order of time. */
const RELAY_BUSY_MS = 20
/** Of each queue: with many of them a pass is a lot of calls. */
const RELAY_QUEUE_MS = 1
/** Behind the hints: rows of a lane that had none. */
const RELAY_THOROUGH_MS = 250
const TURNS_MAX = 50
/** More jobs are to go back than one pass moves: time for others in between. */
const RECONCILE_BUSY_MS = 50
const COUNTS_MS = 5_000

export function createUpkeep(hybrid: Hybrid, isLeading: () => boolean): readonly Service[] {
  const { times, runtime } = hybrid
  const reconciler = new Reconciler(hybrid)
  const reconcile = async (): Promise<number> => {
    if (!isLeading()) return times.reconcileMs
    await hybrid.epochs.refresh()
    return (await reconciler.pass(hybrid.view.rows())) ? RECONCILE_BUSY_MS : times.reconcileMs
  }
  const reaping = async (): Promise<number> => {
    if (!isLeading()) return times.reaperMs
    await reapAll(hybrid)
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
    ...(hybrid.eye === undefined ? [] : [createLoop({ name: 'token counts', runtime, pass: tellCounts })]),
  ]
}

/** False: somebody else may be able to use the Redis that this process cannot use. */
export function mayLead(hybrid: Hybrid): boolean {
  return hybrid.view.tokenRows().every(({ queue }) => !hybrid.watch.isOpen(queue))
}

function createRelay(hybrid: Hybrid, runtime: Runtime, isLeading: () => boolean): Service {
  const { times } = hybrid
  const pipes = new Map<string, string>()
  const sync = new ConfigSync(hybrid)
  const hinted = new Set<string>()
  const listening = new Map<string, () => void>()
  /** When PostgreSQL was last asked about every lane of a queue. */
  const thoroughMs = new Map<string, number>()
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
    }
    const rows = hybrid.view.tokenRows().filter(({ queue }) => isFull || hinted.has(queue))
    const isThorough = (queue: string): boolean =>
      hinted.has(queue) || nowMs - (thoroughMs.get(queue) ?? -Infinity) >= RELAY_THOROUGH_MS
    const thorough = new Set(rows.map(({ queue }) => queue).filter(isThorough))
    for (const queue of thorough) thoroughMs.set(queue, nowMs)
    hinted.clear()
    let hasBacklog = false
    await eachQueue(runtime.logger, 'the relay', rows, async (row) => {
      if (isFull) {
        listen(loop, row.queue)
        if (!hybrid.watch.isOpen(row.queue)) await sync.tell(row)
      }
      hasBacklog = (await drain(row.queue, thorough.has(row.queue))) || hasBacklog
    })
    waitMs = hasBacklog ? Math.max(RELAY_BUSY_MS, rows.length * RELAY_QUEUE_MS) : Math.min(waitMs * 2, times.relayMaxMs)
    return waitMs
  }

  /** Until nothing is left or nothing fits. Answers whether rows remain. */
  async function drain(queue: string, isThorough: boolean): Promise<boolean> {
    for (let turn = 0; turn < TURNS_MAX; turn++) if (!(await relayOnce(hybrid, queue, pipes, isThorough))) break
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
