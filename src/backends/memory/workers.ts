// Worker lives, leader leases and commands of the memory backend.
import type { WorkerId } from '../../core/job.ts'
import { DEFAULTS } from '../../core/limits.ts'
import { controlTopic } from '../../store/wakeups.ts'
import type { BeatReply, BeatRequest, LeadReply, LeadRequest, SeenBeat, WorkerStore } from '../../store/worker-store.ts'
import type { World, WorkerState } from './world.ts'

const COMMANDS_MAX = 100
const NO_NUMBERS = { lastClaimNo: 0, lastAnswered: 0, lastLookNo: 0, lastCommandNo: 0 }

export function memoryWorkers(world: World): WorkerStore {
  return {
    register: (worker) =>
      world.run(() => {
        if (world.workers.has(worker.id)) return
        const nowMs = world.nowMs()
        const record = {
          ...worker,
          state: 'alive',
          beat: 0,
          running: 0,
          blockedMs: 0,
          startedAtMs: nowMs,
          lastBeatAtMs: nowMs,
        } as const
        world.workers.set(worker.id, { record, running: new Set(), commands: [], ...NO_NUMBERS })
        // Kept for the eye for a while.
        forgetDead(world, DEFAULTS.deadWorkerKeptMs, Infinity)
      }),
    beat: (request) => world.run(() => beat(world, request)),
    retire: (id) =>
      world.run(() => {
        const worker = world.workers.get(id)
        if (worker !== undefined) bury(world, worker)
      }),
    list: () => world.run(() => [...world.workers.values()].map(({ record }) => record)),
    declareDead: (seen) => world.run(() => seen.filter((one) => declareDead(world, one)).map(({ id }) => id)),
    lead: (request) => world.run(() => lead(world, request)),
    resign: (role, holder) =>
      world.run(() => {
        const leader = world.leaders.get(role)
        if (leader?.holder === holder) leader.untilMs = -Infinity
      }),
    leader: (role) =>
      world.run(() => {
        const { holder, term, untilMs } = world.leaders.get(role) ?? { holder: '', term: 0, untilMs: -Infinity }
        return untilMs > world.nowMs() ? { holder, term } : null
      }),
    send: (target, command) =>
      world.run(() => {
        const worker = world.workers.get(target)
        if (worker === undefined || worker.record.state === 'dead') return false
        worker.commands = [...worker.commands, { no: ++worker.lastCommandNo, command }].slice(-COMMANDS_MAX)
        world.ring(controlTopic(target))
        return true
      }),
    forget: (endedForMs, limit) => world.run(() => forgetDead(world, endedForMs, limit)),
  }
}

function beat(world: World, request: BeatRequest): BeatReply {
  const worker = world.workers.get(request.id)
  if (worker === undefined || worker.record.state === 'dead') return { alive: false, cancels: [], commands: [] }
  const { record } = worker
  worker.record = {
    ...record,
    beat: record.beat + 1,
    running: request.running,
    blockedMs: request.blockedMs ?? 0,
    lastBeatAtMs: world.nowMs(),
  }
  worker.commands = worker.commands.filter(({ no }) => no > request.commandsSeen)
  const cancels = []
  for (const { id: jobId, lease, cancelRequested } of worker.running)
    if (cancelRequested) cancels.push({ jobId, lease })
  return { alive: true, cancels, commands: worker.commands }
}

function declareDead(world: World, { id, beat: seenBeat }: SeenBeat): boolean {
  const worker = world.workers.get(id)
  if (worker === undefined || worker.record.state === 'dead' || worker.record.beat !== seenBeat) return false
  bury(world, worker)
  return true
}

function bury(world: World, worker: WorkerState): void {
  worker.record = { ...worker.record, state: 'dead' }
  if (worker.running.size > 0) world.dead.add(worker)
}

function forgetDead(world: World, endedForMs: number, limit: number): number {
  const beforeMs = world.nowMs() - endedForMs
  let forgotten = 0
  for (const [id, { record, running }] of world.workers) {
    if (forgotten >= limit) break
    if (record.state === 'dead' && running.size === 0 && record.lastBeatAtMs < beforeMs) {
      world.workers.delete(id satisfies WorkerId)
      forgotten += 1
    }
  }
  return forgotten
}

function lead(world: World, { role, holder, ttlMs }: LeadRequest): LeadReply {
  const nowMs = world.nowMs()
  const leader = world.leaders.get(role)
  if (leader !== undefined && leader.holder !== holder && leader.untilMs > nowMs) {
    return { held: false, holder: leader.holder, term: leader.term }
  }
  const term = leader === undefined ? 1 : leader.holder === holder ? leader.term : leader.term + 1
  world.leaders.set(role, { holder, term, untilMs: nowMs + ttlMs })
  return { held: true, holder, term }
}
