// Insert. The fast path: the statement that stores a job also mints its lease, and its token goes to Redis once, after the
// commit. The enqueue is done with the commit: nobody waits for the push, and what does not arrive is found by reconcile.
// The ledger path: the job becomes ready, and the relay brings it.
//
// The fast path is offered only while the lane has room and no backlog in the ledger, so it cannot overtake older jobs for
// long.
import type { NewJob } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import { isPlanted } from '../../core/planted.ts'
import { laneOf } from '../../core/priority.ts'
import type { Lane } from '../../core/priority.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { InsertReply } from '../../store/ports.ts'
import type { Hybrid } from './hybrid.ts'
import type { EpochTag, MintReply, Offers, PushReply, Token } from './ports.ts'
import { tokenOfNew } from './token-text.ts'
import { guaranteeOf } from './window.ts'

/** How much of a lane is known to be taken, per queue: what the last push has answered and what was pushed since. */
export class LaneState {
  readonly #known = new Map<string, { reply: PushReply; tag: EpochTag }>()
  readonly #asking = new Set<string>()

  learn(queue: string, tag: EpochTag, reply: PushReply): void {
    this.#known.set(queue, { reply, tag })
  }

  /** Null: nobody has asked in this epoch. */
  get(queue: string, tag: EpochTag): PushReply | null {
    const known = this.#known.get(queue)
    return known?.tag === tag ? known.reply : null
  }

  /** Of all queues whose epoch is still the one that was asked. */
  *all(tagOf: (queue: string) => EpochTag | null): Iterable<PushReply> {
    for (const [queue, { reply, tag }] of this.#known) if (tagOf(queue) === tag) yield reply
  }

  /** One question at a time. */
  ask(queue: string, question: () => Promise<unknown>): void {
    if (this.#asking.has(queue)) return
    this.#asking.add(queue)
    void question()
      .catch(() => undefined) // the next insert asks again
      .finally(() => this.#asking.delete(queue))
  }
}

/**
 * A serial way from insert to push: its leases rise, so Redis can tell a push that was doubled from a new one. After an
 * unknown push it is given up, since that push may still arrive.
 */
export class Pipes {
  readonly #free: string[] = []
  readonly #name: string
  #last = 0

  constructor(runtime: Runtime) {
    this.#name = runtime.newId().slice(-12)
  }

  take(): string {
    return this.#free.pop() ?? `${this.#name}.${++this.#last}`
  }

  giveBack(pipe: string): void {
    this.#free.push(pipe)
  }
}

/** Instead of a pipe, for a push without tokens. */
const ASKING = 'ask'

export async function insert(hybrid: Hybrid, jobs: readonly NewJob[]): Promise<InsertReply> {
  const offers = offersFor(hybrid, jobs)
  if (offers === null) return hybrid.store.jobs.insert(jobs)
  const pipe = hybrid.pipes.take()
  const reply = await hybrid.ledger.insert(jobs, offers).catch((error: unknown) => {
    // Whatever it has minted is not ours to push: the repetition will not know the leases.
    hybrid.pipes.giveBack(pipe)
    throw error
  })
  hybrid.runtime.failpoint('hybrid.after-mint')
  hybrid.view.learn(reply.news)
  // Not waited for: the job is enqueued.
  void pushMinted(hybrid, jobs, reply, offers, pipe)
  return reply.reply
}

/** Null: nothing of the call may take the fast path. */
function offersFor(hybrid: Hybrid, jobs: readonly NewJob[]): Offers | null {
  hybrid.refreshSeldom()
  const offers = new Map<string, EpochTag>()
  for (const [queue, counts] of plainPerLane(hybrid, jobs)) {
    const tag = hybrid.view.tag(queue)
    if (tag === null) {
      hybrid.refreshSoon(queue)
      continue
    }
    const row = hybrid.view.row(queue)
    if (row === undefined || row.paused || !hybrid.watch.isSound(queue)) continue
    if (hasRoom(hybrid, queue, tag, counts)) offers.set(queue, tag)
  }
  return offers.size === 0 ? null : offers
}

type PerLane = [high: number, normal: number, low: number]

function plainPerLane({ view }: Hybrid, jobs: readonly NewJob[]): ReadonlyMap<string, PerLane> {
  const all = new Map<string, PerLane>()
  for (const job of jobs) {
    if (!mayBePlain(job)) continue
    const row = view.row(job.queue)
    const lane = row === undefined ? 1 : laneOf(job.priority ?? row.defaultPriority, row.lanes)
    const counts = all.get(job.queue)
    if (counts === undefined) all.set(job.queue, [Number(lane === 0), Number(lane === 1), Number(lane === 2)])
    else counts[lane] += 1
  }
  return all
}

/** Only what can be seen from here; the statement looks again. */
function mayBePlain(job: NewJob): boolean {
  return (
    job.unique === undefined &&
    job.dependsOn === undefined &&
    job.group === undefined &&
    job.limitKey === undefined &&
    job.delayMs === undefined &&
    job.runAtMs === undefined &&
    job.schedule === undefined &&
    job.replayOf === undefined
  )
}

/** In every lane that the call has jobs for: an epoch is offered for all of them or for none. */
function hasRoom(hybrid: Hybrid, queue: string, tag: EpochTag, counts: PerLane): boolean {
  const known = hybrid.lanes.get(queue, tag)
  const ask = (): void => hybrid.lanes.ask(queue, () => push(hybrid, queue, tag, ASKING, [], null))
  if (known === null) {
    ask()
    return false
  }
  const most = guaranteeOf(hybrid.windowTerms())
  const fits = (lane: Lane): boolean =>
    counts[lane] === 0 || (!known.backlog[lane] && known.depths[lane] + counts[lane] <= most)
  const isFree = !known.isFull && fits(0) && fits(1) && fits(2)
  if (!isFree) ask()
  return isFree
}

/** Never throws. */
async function pushMinted(
  hybrid: Hybrid,
  jobs: readonly NewJob[],
  reply: MintReply,
  offers: Offers,
  pipe: string,
): Promise<void> {
  const { leases, nowMs, defaults } = reply
  const byQueue = new Map<string, Token[]>()
  for (const [index, job] of jobs.entries()) {
    const lease = leases[index] ?? 0
    const row = hybrid.view.row(job.queue)
    const own = defaults.get(job.queue)
    if (lease === 0 || row === undefined || own === undefined) continue
    const token = tokenOfNew(job, { lease, nowMs, ...own, lanes: row.lanes })
    const tokens = byQueue.get(job.queue)
    if (tokens === undefined) byQueue.set(job.queue, [token])
    else tokens.push(token)
  }
  try {
    hybrid.runtime.failpoint('hybrid.before-push')
    for (const [queue, tokens] of byQueue) {
      // The epoch it was minted under. In any other its row is older than the first lease, and comes back by itself.
      const tag = offers.get(queue)
      if (tag !== undefined) await pushAll(hybrid, queue, tag, pipe, tokens, null)
    }
    hybrid.pipes.giveBack(pipe)
  } catch {
    // Unknown: the breaker knows, and reconcile finds what did not arrive.
  }
}

/** In batches; the backlog bits go with the last of them. */
export async function pushAll(
  hybrid: Hybrid,
  queue: string,
  tag: EpochTag,
  pipe: string,
  tokens: readonly Token[],
  backlog: PushReply['backlog'] | null,
): Promise<void> {
  if (tokens.length <= LIMITS.claimBatchMax) {
    await push(hybrid, queue, tag, pipe, tokens, backlog)
    return
  }
  // In the order of leases: a part is not to look like an older copy of the one before it.
  const rising = tokens.toSorted((one, other) => one.lease - other.lease)
  for (let from = 0; from < rising.length; from += LIMITS.claimBatchMax) {
    const isLast = from + LIMITS.claimBatchMax >= rising.length
    await push(hybrid, queue, tag, pipe, rising.slice(from, from + LIMITS.claimBatchMax), isLast ? backlog : null)
  }
}

/** Undefined: refused by the gate. */
export async function push(
  hybrid: Hybrid,
  queue: string,
  tag: EpochTag,
  pusher: string,
  tokens: readonly Token[],
  backlog: PushReply['backlog'] | null,
): Promise<PushReply | undefined> {
  const request = { pusher, tokens, backlog, window: hybrid.window() }
  const reply = await hybrid.calls.gated(queue, tag, (race) => race.push(queue, tag, request))
  if (reply !== undefined) hybrid.lanes.learn(queue, tag, reply)
  if (tokens.length > 0 && isPlanted('hybrid-push-twice')) {
    await hybrid.calls.gated(queue, tag, (race) => race.push(queue, tag, { ...request, pusher: `${pusher}+` }))
  }
  return reply
}
