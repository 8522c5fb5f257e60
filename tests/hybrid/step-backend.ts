// A hybrid for suites that call a backend directly: no services run beside it, so each claim first takes the steps that they
// would take, and waits for them. Jobs are put down as running when they are claimed (`confirmed`), and come from the ledger:
// what the suites say of `queued` and `running` holds. Tokens, epochs and the relay are those of the real rules.
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import type { HybridBackendParts } from '../../src/backends/hybrid/compose.ts'
import type { Hybrid } from '../../src/backends/hybrid/hybrid.ts'
import { relayOnce } from '../../src/backends/hybrid/relay.ts'
import type { WorkerId } from '../../src/core/job.ts'
import type { Backend, ClaimReply, ClaimRequest } from '../../src/store/ports.ts'

const WAIT_MAX_MS = 5_000

export function stepBackend(parts: Omit<HybridBackendParts, 'isConfirmed'>): Backend {
  // The window is set by each claim, to what it asks for: there is no other bound here.
  const times = { ...parts.times, windowTotal: Number.MAX_SAFE_INTEGER }
  const { backend, hybrid } = composeHybrid({ ...parts, times, isConfirmed: () => true })
  // The share of the window is set by each claim.
  void hybrid.memory.stop()
  const pipes = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()

  async function claim(request: ClaimRequest): Promise<ClaimReply> {
    const { settle = [], ...rest } = request
    const verdicts = await backend.jobs.apply(settle)
    // In Redis a session is dead when the reaper has been there; here it is at once.
    if ((await hybrid.ledger.notAlive([request.worker])).length > 0) {
      return { ...(await parts.store.jobs.claim(rest)), verdicts }
    }
    const isVoid = request.limit <= 0 || request.claimNo <= (hybrid.sessions.get(request.worker)?.lastClaimNo ?? 0)
    const queues = isVoid ? [] : await ready(hybrid, request.worker, request.queues)
    for (const queue of queues) {
      hybrid.windowShare = (Math.max(request.limit, 1) + 0.5) / hybrid.times.window
      await relayOnce(hybrid, queue, pipes)
    }
    return { ...(await backend.jobs.claim(rest)), verdicts }
  }

  /** One after the other: what one claim has brought to Redis is not to be another's. */
  const inTurn = (request: ClaimRequest): Promise<ClaimReply> => {
    const turn = last.then(() => claim(request))
    last = turn.catch(() => undefined)
    return turn
  }

  return { ...backend, jobs: { ...backend.jobs, insert: (jobs) => parts.store.jobs.insert(jobs), claim: inTurn } }
}

/** Waits until the queues that are there have tokens and this worker may take them; answers those. */
async function ready(hybrid: Hybrid, worker: WorkerId, queues: readonly string[]): Promise<readonly string[]> {
  const session = hybrid.sessions.get(worker)
  if (session === undefined) return []
  const untilMs = performance.now() + WAIT_MAX_MS
  for (;;) {
    await hybrid.epochs.refresh()
    const there = queues.filter((queue) => session.queues.has(queue) && hybrid.view.row(queue) !== undefined)
    const isReady = (queue: string): boolean => {
      const { epoch = -1 } = hybrid.view.row(queue) ?? {}
      const index = session.queues.get(queue)?.index ?? -1
      return hybrid.view.tag(queue) !== null && session.inFlight.mayStart(index, epoch)
    }
    if (there.every(isReady)) return there
    if (performance.now() > untilMs) throw new Error(`no tokens for ${there.join(', ')} after ${WAIT_MAX_MS} ms`)
    hybrid.watch.wake()
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
