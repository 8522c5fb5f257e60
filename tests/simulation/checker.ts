// Watches the store and the handlers, and remembers the first thing that must not happen. Changes are
// checked as they are made; the whole world at times and at the end.
import { checkAttempts, checkBatch, checkChange, checkGroups } from '../../src/core/invariants.ts'
import type { JobFacts } from '../../src/core/invariants.ts'
import { EDGES } from '../../src/core/edges.ts'
import type { Edge, EdgeName } from '../../src/core/edges.ts'
import { runsAlone } from '../../src/core/decide.ts'
import { parentEnded } from '../../src/core/gate.ts'
import { isFinal } from '../../src/core/job.ts'
import type { Dependency, JobId, NewJob, WorkerId } from '../../src/core/job.ts'
import { intervalMs } from '../../src/core/rate.ts'
import type { RateLimit } from '../../src/core/rate.ts'
import type { JobRecord } from '../../src/backends/memory/record.ts'
import type { World } from '../../src/backends/memory/world.ts'
import type { RateReply, RateRequest } from '../../src/store/limit-store.ts'

export interface Violation {
  readonly invariant: string
  readonly message: string
}

/** Rare things that the simulation is for: a campaign in which one never happened says too little. */
export const NOTABLES = ['started alone', 'poison'] as const
export const HYBRID_NOTABLES = ['started unmarked'] as const
export type Notable = (typeof NOTABLES)[number] | (typeof HYBRID_NOTABLES)[number]

interface Run {
  readonly worker: WorkerId | null
  readonly isLive: () => boolean
}

type Seen = JobFacts & { readonly lastEdgeLease: number; readonly progress: string | null; readonly no: number }

export class Checker {
  violation: Violation | null = null
  readonly edges = new Map<EdgeName, number>()
  readonly notables = new Map<Notable, number>()
  world!: World // set right after the world exists; the two know each other
  /** Until when a worker may trust itself, minus now. */
  trustLeftMs: (worker: WorkerId) => number = () => Infinity
  readonly #seen = new Map<JobId, Seen>()
  readonly #dependencies = new Map<JobId, readonly Dependency[]>()
  readonly #ticks = new Set<string>()
  readonly #tokens = new Map<string, number[]>()
  readonly #limitedStarts = new Map<string, number>()
  readonly #erased = new Set<JobId>()
  readonly #handedOut = new Map<string, number>()
  readonly #startedLeases = new Set<number>()
  readonly #runs = new Map<JobId, Set<Run>>()

  fail(invariant: string, message: string): void {
    this.violation ??= { invariant, message }
  }

  inserted(jobs: readonly NewJob[]): void {
    for (const { id, dependsOn } of jobs) if (dependsOn !== undefined) this.#dependencies.set(id, dependsOn)
  }

  changed(record: JobRecord): void {
    const before = this.#seen.get(record.id) ?? null
    if (record.erased) {
      this.#count('remove')
      this.#seen.delete(record.id)
      this.#erased.add(record.id)
      return
    }
    this.#countEdge(before, record)
    if (record.status === 'failed' && record.lastError?.code === 'POISON' && before?.status === 'running')
      this.#note('poison')
    const nowMs = this.world.nowMs()
    const problem = checkChange(before, record, nowMs) ?? checkAttempts(record, record.attempts ?? [])
    if (problem !== null) this.fail('legal-change', `job ${record.id} (${record.name}): ${problem}`)
    if (before?.status === 'running' && record.status !== 'running' && record.lastEdgeLease !== before.lease) {
      this.fail(
        'fenced',
        `job ${record.id} was settled under lease ${record.lastEdgeLease}, its run has ${before.lease}`,
      )
    }
    if (isTaken(before?.status) && !isTaken(record.status)) {
      const run = this.#liveRun(record.id)
      if (run !== undefined)
        this.fail('not-taken-back', `job ${record.id} is ${record.status} while ${run.worker} runs it`)
    }
    if (before === null) this.#checkNew(record)
    if (isTaken(record.status) && !isTaken(before?.status)) this.#checkClaim(record)
    if (record.uniqueKey !== null) this.#checkUnique(record)
    this.#seen.set(record.id, factsOf(record))
  }

  /** Hybrid: a token of the job was handed to this worker. */
  handedOut(id: JobId, worker: WorkerId, lease: number): void {
    this.#handedOut.set(`${id} ${worker}`, lease)
  }

  /** A handler goes on for a while. Answers how to say that it has ended. */
  runs(id: JobId, worker: WorkerId | null, isLive: () => boolean): () => void {
    const run = { worker, isLive }
    const others = this.#runs.get(id) ?? new Set()
    this.#runs.set(id, others.add(run))
    return () => others.delete(run)
  }

  /** A handler was called. */
  started(id: JobId, worker: WorkerId | null): void {
    const record = this.world.jobs.get(id)
    const other = this.#liveRun(id)
    if (other !== undefined) this.fail('one-run', `job ${id} is started while ${other.worker} runs it`)
    this.#checkOneStart(id, worker)
    if (this.#isUnmarkedStart(record, worker)) {
      this.#note('started unmarked')
    } else if (record?.status !== 'running' || record.worker !== worker) {
      const found = record === undefined ? 'gone' : `${record.status} with ${record.worker}`
      this.fail('owned-start', `job ${id} was started by ${worker}, but it is ${found}`)
    }
    if (record !== undefined && worker !== null && runsAlone(record)) {
      this.#note('started alone')
      const beside = (this.world.workers.get(worker)?.running.size ?? 0) - 1
      if (beside > 0)
        this.fail('alone', `job ${id} has crashed ${record.crashCount} workers and was started beside ${beside} others`)
    }
    if (worker !== null && this.trustLeftMs(worker) <= 0) {
      this.fail('trust', `job ${id} was started by ${worker} outside its trust window`)
    }
    if (record?.limitKey !== null && record !== undefined) {
      const key = record.limitKey
      this.#limitedStarts.set(key, (this.#limitedStarts.get(key) ?? 0) + 1)
      if ((this.#limitedStarts.get(key) ?? 0) > (this.#tokens.get(key)?.length ?? 0)) {
        this.fail('rate', `more jobs of key ${key} were started than tokens were given`)
      }
    }
  }

  /** Hybrid: the row of a run that was started may not be marked yet; its lease is the one that was handed out. */
  #isUnmarkedStart(record: JobRecord | undefined, worker: WorkerId | null): boolean {
    if (record?.status !== 'dispatched' || worker === null) return false
    if (this.#handedOut.get(`${record.id} ${worker}`) !== record.lease) return false
    return true
  }

  /** Hybrid: each lease is started once, whatever became of its row. */
  #checkOneStart(id: JobId, worker: WorkerId | null): void {
    const lease = this.#handedOut.get(`${id} ${worker}`)
    if (lease === undefined) return
    if (this.#startedLeases.has(lease)) this.fail('one-start', `job ${id} was started twice under ${lease}`)
    this.#startedLeases.add(lease)
  }

  /** A handler that goes on, of a worker that PostgreSQL calls alive. */
  #liveRun(id: JobId): Run | undefined {
    return [...(this.#runs.get(id) ?? [])].find(
      ({ worker, isLive }) => worker !== null && isLive() && this.world.workers.get(worker)?.record.state === 'alive',
    )
  }

  tokens(requests: readonly RateRequest[], replies: readonly RateReply[], limit: RateLimit): void {
    const nowMs = this.world.nowMs()
    for (const [index, { key }] of requests.entries()) {
      if (key === null || !replies[index]?.ok) continue
      const taken = this.#tokens.get(key) ?? []
      taken.push(nowMs)
      this.#tokens.set(key, taken)
      for (let first = 0; first < taken.length; first++) {
        const inWindow = taken.length - first
        const allowed = limit.burst + (nowMs - taken[first]!) / intervalMs(limit)
        if (inWindow > allowed + 1e-6) this.fail('rate', `${inWindow} tokens of ${key} in ${nowMs - taken[first]!} ms`)
      }
    }
  }

  /** The whole world, from scratch. */
  checkWorld(): void {
    const jobs = [...this.world.jobs.values()]
    for (const { record } of this.world.batches.values()) {
      const problem = checkBatch(
        record.id,
        record.counts,
        jobs.filter(({ batch }) => batch === record.id),
      )
      if (problem !== null) this.fail('batch-counts', problem)
    }
    const group = checkGroups(jobs)
    if (group !== null) this.fail('group', group)
    for (const [name, { counts }] of this.world.queues) {
      for (const [status, count] of Object.entries(counts)) {
        const recount = jobs.filter((job) => job.queue === name && job.status === status).length
        if (recount !== count) this.fail('queue-counts', `${name} counts ${count} ${status}, there are ${recount}`)
      }
    }
  }

  #checkNew({ id, schedule }: JobRecord): void {
    if (schedule === null) return
    const tick = `${schedule.name}@${schedule.tickMs}`
    if (this.#ticks.has(tick)) this.fail('tick-once', `tick ${tick} fired again as job ${id}`)
    this.#ticks.add(tick)
  }

  #checkClaim(record: JobRecord): void {
    if (this.world.queue(record.queue).config.paused)
      this.fail('pause', `job ${record.id} was claimed from a paused queue`)
    for (const { parent, onFailure } of this.#dependencies.get(record.id) ?? []) {
      const found = this.world.jobs.get(parent)
      // A replayed child, a replayed parent and a deleted parent, also one that a late copy of its insert brought back, are
      // an operator's will.
      if (record.replayedAtMs !== null || found === undefined || found.replayedAtMs !== null) continue
      if (this.#erased.has(parent)) continue
      const { status } = found
      if (!isFinal(status) || parentEnded(status, onFailure) !== 'satisfied') {
        this.fail('dependency', `job ${record.id} was claimed although its parent is ${status} (${onFailure})`)
      }
    }
    if (record.group !== null) this.#checkGroupOrder(record)
    if (record.limitKey !== null) this.#checkKeySlots(record)
  }

  #checkGroupOrder(record: JobRecord): void {
    for (const other of this.world.order) {
      if (other.erased || other.group !== record.group || other.queue !== record.queue || other === record) continue
      if (other.status === 'running')
        this.fail('group', `jobs ${other.id} and ${record.id} of group ${record.group} run at once`)
      const older = other.no < record.no && other.replayedAtMs === null && record.replayedAtMs === null
      if (older && !isFinal(other.status))
        this.fail('group', `job ${record.id} overtook ${other.id} in group ${record.group}`)
    }
  }

  #checkKeySlots(record: JobRecord): void {
    const limit = this.world.queue(record.queue).config.limits.perKeyConcurrency ?? Infinity
    let running = 0
    for (const other of this.world.order) {
      if (!other.erased && other.limitKey === record.limitKey && other.status === 'running') running += 1
    }
    if (running > limit) this.fail('concurrency', `${running} jobs of key ${record.limitKey} run at once, ${limit} may`)
  }

  #checkUnique(record: JobRecord): void {
    const live = (other: JobRecord): boolean =>
      !other.erased && other.uniqueKey === record.uniqueKey && other.queue === record.queue && !isFinal(other.status)
    const holds = ({ unique, lease }: JobRecord): boolean =>
      unique?.mode === 'until-finished' || (unique?.mode === 'until-started' && lease === 0)
    const held = this.world.order.filter((other) => live(other) && holds(other))
    if (held.length > 1) this.fail('unique', `${held.length} live jobs hold the key ${record.uniqueKey}`)
  }

  #countEdge(before: Seen | null, record: JobRecord): void {
    if (before === null) this.#count('enqueue')
    else if (before.status !== 'running' && record.status === 'running') this.#count('claim')
    else if (before.status !== 'dispatched' && record.status === 'dispatched') this.#count('dispatch')
    else if (before.status === 'dispatched' && record.status === 'queued' && record.lastEdge === 'return')
      this.#count('undispatch')
    else if (before.status === 'running' && record.status === 'running') {
      this.#count(record.cancelRequested && !before.cancelRequested ? 'requestCancel' : 'report')
    } else if (before.status === 'scheduled' && record.lastEdge !== 'cancel') this.#count('promote')
    else if ((EDGES[record.lastEdge] as Edge).to.includes(record.status) && record.lastEdge !== 'enqueue')
      this.#count(record.lastEdge)
    if (before?.status === 'queued' && record.status === 'blocked' && record.lastEdge !== 'replace')
      this.#count('withhold')
    if (before?.status === 'blocked' && !isFinal(record.status) && record.status !== 'blocked') this.#count('admit')
  }

  #note(notable: Notable): void {
    this.notables.set(notable, (this.notables.get(notable) ?? 0) + 1)
  }

  #count(edge: EdgeName): void {
    this.edges.set(edge, (this.edges.get(edge) ?? 0) + 1)
  }
}

function isTaken(status: JobRecord['status'] | undefined): boolean {
  return status === 'running' || status === 'dispatched'
}

function factsOf(record: JobRecord): Seen {
  return {
    id: record.id,
    status: record.status,
    lease: record.lease,
    attemptCount: record.attemptCount,
    maxAttempts: record.maxAttempts,
    crashCount: record.crashCount,
    cancelRequested: record.cancelRequested,
    runAtMs: record.runAtMs,
    enqueuedAtMs: record.enqueuedAtMs,
    lastEdgeLease: record.lastEdgeLease,
    progress: record.progress,
    no: record.no,
  }
}
