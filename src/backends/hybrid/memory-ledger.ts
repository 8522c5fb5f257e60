// The ledger over the world of the memory backend: what the statements of the PostgreSQL half mean, as plain code. The
// simulator runs the rules of the hybrid on it. One call is one atom.
import { decideOutcome } from '../../core/decide.ts'
import { MillraceError } from '../../core/errors.ts'
import type { JobId, LeaseNumber, LeaseRef, NewJob, WorkerId } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import { DEFAULT_POLICY } from '../../core/policy.ts'
import { laneOf } from '../../core/priority.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import { backendOver } from '../memory/backend.ts'
import { claimed } from '../memory/claim.ts'
import { insertJobs } from '../memory/insert.ts'
import { enterDispatched, enterRunning, leave } from '../memory/places.ts'
import type { JobRecord } from '../memory/record.ts'
import { settle } from '../memory/settle.ts'
import { freeKey } from '../memory/unique.ts'
import type { World } from '../memory/world.ts'
import type { DispatchNews, DispatchRow, FlipRequest, InFlightRef, Ledger, Offers } from './ports.ts'
import type { DispatchedRow, MintReply, RelayReply, SettleReply } from './ports.ts'
import { TOKEN_BODY_MAX } from './ports.ts'

type Kept = Pick<DispatchRow, 'mode' | 'epoch' | 'birth' | 'redisId' | 'firstLease'>

const NO_ROW: Kept = { mode: 'ledger', epoch: 0, birth: null, redisId: '', firstLease: 0 }
const OUT_OF_LEDGER = new Set(['cancel', 'remove'])

/** What PostgreSQL holds beyond the world: it survives every process. */
export class LedgerState {
  counter = 0
  readonly rows = new Map<string, Kept>()
  readonly epochSeen = new Map<WorkerId, number>()
  readonly failing = new Map<WorkerId, readonly string[]>()
  server = 'server-1'
  knownServer = 'server-1'
}

export function memoryLedger(world: World, state: LedgerState): Ledger {
  const { workers } = backendOver(world)
  const atom = <Value>(act: () => Value): Promise<Value> => world.run(act)
  return {
    register: async (worker) => {
      await workers.register(worker)
      if (!state.epochSeen.has(worker.id)) state.epochSeen.set(worker.id, 0)
    },
    dispatch: (queues) => atom(() => newsOf(world, state, queues)),
    async beat(request) {
      const reply = await workers.beat(request)
      if (reply.alive) state.failing.set(request.id, request.failing)
      const queues = world.workers.get(request.id)?.record.queues ?? []
      const epochSeen = state.epochSeen.get(request.id) ?? 0
      return { ...reply, epochSeen, news: newsOf(world, state, queues) }
    },
    mark: (worker, refs) => atom(() => (isAlive(world, worker) ? markAll(world, worker, refs) : refs)),
    adopt: (worker, epoch, refs) =>
      atom(() => {
        if (!isAlive(world, worker)) return null
        state.epochSeen.set(worker, Math.max(state.epochSeen.get(worker) ?? 0, epoch))
        return markAll(world, worker, refs)
      }),
    close: () => Promise.resolve(),
    flip: (request) => atom(() => flip(world, state, request)),
    born: (queue, epoch, birth) =>
      atom(() => {
        const row = state.rows.get(queue)
        if (row?.epoch !== epoch || row.birth !== null) return false
        state.rows.set(queue, { ...row, birth })
        return true
      }),
    renewServer: () => atom(() => renewServer(world, state)),
    insert: (jobs, offers) => atom(() => insertAndMint(world, state, jobs, offers)),
    relay: (queue, tag, rooms) => atom(() => relay(world, state, queue, tag, rooms)),
    settle: (worker, transitions) => atom(() => settleAll(world, worker, transitions)),
    inside: () => {
      throw new MillraceError('NOT_SUPPORTED', 'the ledger in memory has no transactions')
    },
    confirm: (worker, refs, leaseMs) => atom(() => confirm(world, worker, refs, leaseMs)),
    bodies: (ids) => atom(() => new Map(ids.flatMap((id) => bodyOf(world, id)))),
    requeue: (queue, epoch, refs) => atom(() => (barrier(world, state, queue, epoch) ? unmarkedBack(world, refs) : 0)),
    requeueOld: (queue, epoch, most) =>
      atom(() => {
        if (!barrier(world, state, queue, epoch)) return -1
        const { mode, firstLease } = state.rows.get(queue) ?? NO_ROW
        const old = unmarkedOf(world, queue).filter(({ lease }) => mode === 'ledger' || lease < firstLease)
        return unmarkedBack(world, old.slice(0, most))
      }),
    giveBack: (worker, refs) => atom(() => giveBack(world, worker, refs)),
    bequeath: (dead, refs) => atom(() => bequeath(world, dead, refs)),
    notAlive: (ids) => atom(() => ids.filter((id) => !isAlive(world, id) || isPlanted('hybrid-reap-live'))),
    leaseMark: () => atom(() => ({ next: world.lastLease + 1, server: state.server })),
    unmarked: (queue, after, below, most) =>
      atom(() =>
        unmarkedOf(world, queue)
          .filter(({ lease }) => lease > after && lease < below)
          .slice(0, most),
      ),
    settleRevoked: (transition, lease, barrierOf) =>
      atom((): Verdict => {
        const record = world.jobs.get(transition.jobId)
        if (record === undefined) return 'missing'
        if (record.status !== 'dispatched' || record.lease !== lease) return 'stale'
        if (barrierOf !== null && !barrier(world, state, barrierOf.queue, barrierOf.epoch)) return 'stale'
        return settle(world, transition)
      }),
    flagCancel: (ref, worker, thenRemove) => atom(() => flagCancel(world, ref, worker, thenRemove)),
  }
}

function rowOf(world: World, state: LedgerState, queue: string): DispatchRow {
  const { config } = world.queue(queue)
  const { paused, version, lanes, lowerLaneShare, defaultPriority } = config
  const kept = state.rows.get(queue) ?? NO_ROW
  return { queue, ...kept, paused, configVersion: version, lanes, lowerLaneShare, defaultPriority }
}

function newsOf(world: World, state: LedgerState, queues?: readonly string[]): DispatchNews {
  const names = queues ?? [...world.queues.keys()]
  const rows = names.filter((name) => world.queues.has(name)).map((name) => rowOf(world, state, name))
  return { rows, epoch: state.counter, serverChanged: state.server !== state.knownServer }
}

function isAlive(world: World, worker: WorkerId): boolean {
  return world.workers.get(worker)?.record.state === 'alive'
}

/** No live session may still be running something of an older epoch without having said so. */
function barrier(world: World, state: LedgerState, queue: string, epoch: number): boolean {
  const now = (state.rows.get(queue) ?? NO_ROW).epoch
  if (now !== epoch) return false
  if (isPlanted('hybrid-barrier-ignored')) return true
  for (const [worker, seen] of state.epochSeen) if (seen < now && isAlive(world, worker)) return false
  return true
}

function flip(world: World, state: LedgerState, request: FlipRequest): readonly DispatchRow[] {
  const { queues, mode, redisId, unlessHealthy, above = 0 } = request
  const due = queues.filter(({ queue, expected }) => {
    const { epoch } = state.rows.get(queue) ?? NO_ROW
    return epoch === expected && !(unlessHealthy && isServed(world, state, queue, epoch))
  })
  if (due.length === 0) return []
  state.counter = Math.max(state.counter, above) + 1
  const firstLease = ++world.lastLease
  return due.map(({ queue }) => {
    state.rows.set(queue, { mode, epoch: state.counter, birth: null, redisId, firstLease })
    return rowOf(world, state, queue)
  })
}

/** Some live session works on this queue with this epoch. */
function isServed(world: World, state: LedgerState, queue: string, epoch: number): boolean {
  for (const [worker, seen] of state.epochSeen) {
    if (seen < epoch || !isAlive(world, worker) || state.failing.get(worker)?.includes(queue) === true) continue
    if (world.workers.get(worker)?.record.queues.includes(queue) === true) return true
  }
  return false
}

function renewServer(world: World, state: LedgerState): void {
  if (state.server === state.knownServer) return
  state.knownServer = state.server
  state.counter += 2 ** 20
  world.lastLease += 2 ** 32
  for (const [queue, row] of state.rows) {
    state.rows.set(queue, { ...row, mode: 'ledger', epoch: state.counter, birth: null, firstLease: world.lastLease })
  }
}

function mayMint(world: World, state: LedgerState, queue: string, tag: string | undefined): boolean {
  const { mode, epoch, birth } = state.rows.get(queue) ?? NO_ROW
  const { paused } = world.queue(queue).config
  return mode === 'token' && !paused && tag === `${epoch}.${birth}` && state.server === state.knownServer
}

function insertAndMint(world: World, state: LedgerState, jobs: readonly NewJob[], offers: Offers): MintReply {
  const fresh = new Set(jobs.filter(({ id }) => !world.jobs.has(id)).map(({ id }) => id))
  const reply = insertJobs(world, jobs)
  const defaults = new Map<string, { priority: number; maxAttempts: number }>()
  const leases = jobs.map((job) => {
    const record = world.jobs.get(job.id)
    if (!reply.ok || record?.status !== 'queued' || !fresh.delete(job.id) || !isPlain(world, job)) return 0
    if (!mayMint(world, state, job.queue, offers.get(job.queue))) return 0
    const { defaultPriority: priority, defaultAttempts: maxAttempts } = world.queue(job.queue).config
    defaults.set(job.queue, { priority, maxAttempts })
    return mint(world, record)
  })
  const missed = [...new Set(jobs.map(({ queue }) => queue))].filter(
    (queue) => world.queues.has(queue) && !mayMint(world, state, queue, offers.get(queue)),
  )
  return { reply, leases, nowMs: world.nowMs(), defaults, news: newsOf(world, state, missed) }
}

function isPlain(world: World, job: NewJob): boolean {
  const { concurrency, perKeyConcurrency, rate, perKeyRate } = world.queue(job.queue).config.limits
  const isLimited = [concurrency, perKeyConcurrency, rate, perKeyRate].some((limit) => limit !== null)
  const isKeyed = job.unique !== undefined || job.group !== undefined || job.limitKey !== undefined
  return !isLimited && !isKeyed && job.dependsOn === undefined
}

function mint(world: World, record: JobRecord): LeaseNumber {
  leave(world, record)
  record.lease = ++world.lastLease as LeaseNumber // minted here
  record.worker = null
  record.startedAtMs = null
  record.progress = null
  record.updatedAtMs = world.nowMs()
  enterDispatched(world, record)
  // An until-started key ends at dispatch.
  freeKey(world, record)
  world.onChange?.(record)
  return record.lease
}

function relay(
  world: World,
  state: LedgerState,
  name: string,
  tag: string,
  rooms: readonly [number, number, number],
): RelayReply {
  if (!mayMint(world, state, name, tag)) {
    return { jobs: [], backlog: [false, false, false], refused: newsOf(world, state, [name]) }
  }
  const queue = world.queue(name)
  const left = [...rooms]
  const backlog: [boolean, boolean, boolean] = [false, false, false]
  const picked = [...queue.ready.records()].filter(({ priority }) => {
    const lane = laneOf(priority, queue.config.lanes)
    if (left[lane]! > 0) return left[lane]!-- > 0
    backlog[lane] = true
    return false
  })
  const jobs = picked.map((record) => {
    mint(world, record)
    const job = claimed(record, queue)
    return { ...job, payload: job.payload.length > TOKEN_BODY_MAX ? null : job.payload }
  })
  return { jobs, backlog, refused: null }
}

function settleAll(world: World, worker: WorkerId | null, transitions: readonly Transition[]): SettleReply {
  const dispatched: DispatchedRow[] = []
  const verdicts = transitions.map((transition, index): Verdict => {
    const record = world.jobs.get(transition.jobId)
    if (record?.status !== 'dispatched') return settle(world, transition)
    const { lease } = transition.guard
    if (lease === record.lease && transition.edge === 'report') {
      // Whoever reports runs it: the row says so from now on, as after a mark.
      if (worker !== null && isAlive(world, worker)) markOne(world, worker, record, 0)
      return settle(world, transition)
    }
    if (lease === record.lease) {
      record.worker = worker
      record.startedAtMs = world.nowMs() - (transition.ranMs ?? 0)
      return settle(world, transition)
    }
    if (lease === undefined && transition.edge === 'requestCancel') {
      flagCancel(world, { jobId: record.id, lease: record.lease }, null, transition.thenRemove === true)
      return 'applied'
    }
    if (lease === undefined && OUT_OF_LEDGER.has(transition.edge)) {
      dispatched.push({ index, queue: record.queue, lease: record.lease })
      return 'stale'
    }
    return settle(world, transition)
  })
  return { verdicts, dispatched }
}

function markOne(world: World, worker: WorkerId, record: JobRecord, ageMs: number): void {
  leave(world, record)
  record.worker = worker
  record.startedAtMs = world.nowMs() - Math.round(ageMs)
  enterRunning(world, record)
  world.workers.get(worker)?.running.add(record)
  world.onChange?.(record)
}

function markAll(world: World, worker: WorkerId, refs: readonly InFlightRef[]): readonly LeaseRef[] {
  return refs.filter(({ jobId, lease, ageMs }) => {
    const record = world.jobs.get(jobId)
    if (record === undefined || record.lease !== lease) return true
    if (record.status === 'dispatched') markOne(world, worker, record, ageMs)
    return record.status !== 'running' || record.worker !== worker
  })
}

function confirm(
  world: World,
  worker: WorkerId,
  refs: readonly LeaseRef[],
  leaseMs: number | undefined,
): readonly LeaseRef[] {
  if (!isAlive(world, worker)) return []
  return refs.filter(({ jobId, lease }) => {
    const record = world.jobs.get(jobId)
    if (record === undefined || record.lease !== lease) return false
    if (record.status === 'dispatched') markOne(world, worker, record, 0)
    else if (record.status !== 'running' || record.worker !== worker) return false
    if (leaseMs !== undefined) world.visibility.add(record, world.nowMs() + leaseMs)
    return true
  })
}

function bodyOf(world: World, id: JobId): readonly (readonly [JobId, string])[] {
  const record = world.jobs.get(id)
  return record === undefined ? [] : [[id, record.payload]]
}

function unmarkedOf(world: World, queue: string): readonly LeaseRef[] {
  const found = [...world.jobs.values()].filter((record) => record.status === 'dispatched' && record.queue === queue)
  return found.map(({ id: jobId, lease }) => ({ jobId, lease })).sort((one, other) => one.lease - other.lease)
}

function unmarkedBack(world: World, refs: readonly LeaseRef[]): number {
  const rows = refs.filter(({ jobId, lease }) => {
    const record = world.jobs.get(jobId)
    return record?.status === 'dispatched' && record.lease === lease
  })
  for (const ref of rows) settle(world, returned(ref))
  return rows.length
}

function giveBack(world: World, worker: WorkerId, refs: readonly LeaseRef[]): number {
  const mine = refs.filter(({ jobId }) => {
    const record = world.jobs.get(jobId)
    return record?.status === 'dispatched' || record?.worker === worker
  })
  return mine.filter((ref) => ['applied', 'alternative'].includes(settle(world, returned(ref)))).length
}

function bequeath(world: World, dead: WorkerId, refs: readonly LeaseRef[]): number {
  const state = world.workers.get(dead)
  if (isAlive(world, dead) && !isPlanted('hybrid-reap-live')) return 0
  // A session whose row is long gone: nobody can be its heir, and nobody of it lives.
  if (state === undefined) return unmarkedBack(world, refs)
  let count = 0
  for (const { jobId, lease } of refs) {
    const record = world.jobs.get(jobId)
    if (record?.status !== 'dispatched' || record.lease !== lease) continue
    markOne(world, dead, record, 0)
    world.dead.add(state)
    count += 1
  }
  return count
}

function flagCancel(world: World, ref: LeaseRef, worker: WorkerId | null, thenRemove: boolean): boolean {
  const record = world.jobs.get(ref.jobId)
  if (record === undefined || record.lease !== ref.lease) return false
  if (record.status !== 'dispatched' && record.status !== 'running') return false
  record.cancelRequested = true
  if (thenRemove) record.removeRequested = true
  if (worker !== null && record.status === 'dispatched' && isAlive(world, worker)) markOne(world, worker, record, 0)
  else world.onChange?.(record)
  return true
}

function returned({ jobId, lease }: LeaseRef): Transition {
  const facts = { id: jobId, lease, attemptCount: 0, maxAttempts: 1, crashCount: 0 }
  return decideOutcome(facts, { outcome: { kind: 'returned' }, ranMs: 0, nowMs: 0 }, DEFAULT_POLICY, () => 0)
}
