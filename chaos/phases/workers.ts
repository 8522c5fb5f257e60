// What happens to workers: killed, stopped, blocked, poisoned.
import { until } from '../../tests/postgres/faults/until.ts'
import { drainFlaws, robbedByDrain } from '../checks/drain.ts'
import type { Drain } from '../checks/drain.ts'
import { unfinished } from '../checks/delivery.ts'
import type { Robbed } from '../checks/delivery.ts'
import { wait } from '../scenario.ts'
import type { Scenario, Struck } from '../scenario.ts'
import type { Stage } from '../stage.ts'
import { awaitedOf } from '../system.ts'
import { STOP_MAX_MS } from '../systems/millrace.ts'

const EVERYWHERE = ['postgres', 'redis', 'hybrid'] as const
const KILL_EVERY_MS = 2_500
const RESTART_MS = 1_000
const GOOD_JOBS = 49
const POISON_MAX_MS = 60_000
/** A pill that is given again and again would go on for ever. */
const DEATHS_MAX = 12
/** Three tries, and one more if its worker dies beside another that had it. */
const DEATHS_GOOD = 4
/** Whoever ran beside it runs alone until it is cleared, one after the other. */
const CLEARED_MAX_S = 20
const LOOK_MS = 100
/** So many jobs, some of them in each worker, whose first runs take longer than a worker waits for them. */
const OUTLASTING = 8
const OUTLASTING_MS = STOP_MAX_MS + 3_000

async function killOne({ workers, startWorker, ...stage }: Stage): Promise<Struck> {
  const victim = workers[0]!
  await busy(stage, victim.pid)
  victim.signal('SIGKILL')
  const atMs = Date.now()
  await startWorker()
  return { atMs, backMs: Date.now(), robbed: [{ pid: victim.pid, fromMs: atMs, toMs: atMs }] }
}

export function robbedNow(pid: number): Robbed {
  const nowMs = Date.now()
  return { pid, fromMs: nowMs, toMs: nowMs }
}

/** Until this process is in the middle of a job that has just begun. */
export async function busy({ books }: Pick<Stage, 'books'>, pid: number): Promise<void> {
  const isBusy = (): boolean => books().runs.some((run) => run.pid === pid && run.endMs === undefined)
  await until(isBusy, `process ${pid} to be busy`)
}

export const WORKER_SCENARIOS: readonly Scenario[] = [
  {
    name: 'baseline',
    says: 'nothing is done',
    backends: EVERYWHERE,
    peers: 'usual',
    goesOn: true,
    async strike(_, { phaseMs }) {
      const atMs = Date.now()
      await wait(phaseMs)
      return { atMs, backMs: atMs, robbed: [] }
    },
  },
  {
    name: 'kill-worker',
    says: 'one of two workers gets SIGKILL in the middle of its jobs and is started again; default settings',
    backends: EVERYWHERE,
    peers: 'usual',
    ttl: 'default',
    strike: killOne,
    interrupts: true,
    promise: { recoveryMaxS: 15 },
  },
  {
    name: 'kill-worker-short-ttl',
    says: 'the same with a ttl of 5 s, or what comes nearest to one',
    backends: EVERYWHERE,
    peers: 'asked',
    strike: killOne,
    interrupts: true,
    promise: { recoveryMaxS: 6 },
  },
  {
    name: 'repeated-kill',
    says: 'a worker gets SIGKILL every 2.5 s and is started again a second later',
    backends: EVERYWHERE,
    peers: 'usual',
    async strike({ workers, startWorker }, { phaseMs }) {
      const robbed: Robbed[] = []
      for (const endMs = Date.now() + 2 * phaseMs; robbed.length === 0 || Date.now() < endMs;) {
        const victim = workers.at(-1)!
        victim.signal('SIGKILL')
        robbed.push(robbedNow(victim.pid))
        await wait(RESTART_MS)
        await startWorker()
        await wait(KILL_EVERY_MS - RESTART_MS)
      }
      return { atMs: robbed[0]!.fromMs, backMs: Date.now(), robbed }
    },
    // A job that was in two killed processes waits as its retry policy says, and then runs alone.
    interrupts: true,
    promise: { recoveryMaxS: 20 },
  },
  {
    name: 'worker-stopped',
    says: 'one of two workers is stopped for two ttls (SIGSTOP) and goes on: what it reports then comes too late',
    backends: EVERYWHERE,
    peers: 'asked',
    async strike({ workers, ...stage }, { ttlMs }) {
      const victim = workers[1]!
      await busy(stage, victim.pid)
      victim.signal('SIGSTOP')
      const atMs = Date.now()
      await wait(2 * ttlMs)
      victim.signal('SIGCONT')
      return { atMs, backMs: Date.now(), robbed: [{ pid: victim.pid, fromMs: atMs, toMs: atMs }] }
    },
    interrupts: true,
  },
  {
    name: 'worker-drained',
    says: 'one of two workers gets SIGTERM, ends what it can within its deadline of 3 s, gives back what takes longer, and another takes its place, as in a deployment',
    backends: EVERYWHERE,
    peers: 'asked',
    strike: drainOne,
    interrupts: true,
    // Counted from the deadline: handlers that ignore their signal have a grace.
    promise: { recoveryMaxS: 2 },
  },
  {
    name: 'loop-blocked',
    says: 'a handler blocks the event loop of its worker for 60 s; default settings',
    backends: EVERYWHERE,
    peers: 'usual',
    goesOn: true,
    usually: ['bullmq'],
    ratePerS: 50,
    ttl: 'default',
    async strike({ blocker, enqueue, books }, { blockedMs }) {
      await enqueue({ id: blocker, longMs: blockedMs })
      const atMs = Date.now()
      const isOver = (): boolean => books().runs.some(({ id, endMs }) => id === blocker && endMs !== undefined)
      await until(isOver, 'the blocker to end', { limitMs: 3 * blockedMs })
      return { atMs, backMs: Date.now(), robbed: [] }
    },
  },
  {
    name: 'poison-pill',
    says: 'one job of 50 kills its process each time; dead workers are started again',
    backends: EVERYWHERE,
    peers: 'usual',
    ratePerS: 0,
    strike: poison,
    promise: { recoveryMaxS: CLEARED_MAX_S },
  },
]

async function drainOne(stage: Stage): Promise<Struck> {
  const { workers, system, place } = stage
  const job = { longMs: 0, firstMs: OUTLASTING_MS }
  const all = new Set(await Promise.all(Array.from({ length: OUTLASTING }, () => stage.enqueue(job))))
  const begun = () => stage.books().runs.filter(({ id }) => all.has(id))
  await until(() => begun().length === OUTLASTING, 'the long jobs to begin')
  const victim = workers.find(({ pid }) => begun().some((run) => run.pid === pid))!
  const termMs = Date.now()
  victim.signal('SIGTERM')
  const outlasting = begun().flatMap(({ id, pid }) => (pid === victim.pid ? [id] : []))
  const hasEnded = await until(() => !victim.isAlive, 'it to end').then(
    () => true,
    () => false,
  )
  victim.signal('SIGKILL')
  const exitMs = hasEnded ? victim.endedMs! : Infinity
  const exitCode = victim.exitCode ?? null
  const drain: Drain = { pid: victim.pid, termMs, exitMs, exitCode, deadlineMs: STOP_MAX_MS, outlasting }
  await stage.startWorker()
  // The second runs, and the first ones of the other worker.
  await until(() => unfinished(stage.books()).every((id) => !all.has(id)), 'the long jobs to end')
  const flaws = drainFlaws(stage.books(), drain, (await system.record?.(place)) ?? [])
  return { atMs: termMs, backMs: Date.now(), robbed: [robbedByDrain(drain)], flaws }
}

async function poison(stage: Stage): Promise<Struck> {
  const { workers, pill } = stage
  const atMs = Date.now()
  const robbed: Robbed[] = []
  await stage.enqueue({ id: pill, longMs: 0 })
  for (let count = 0; count < GOOD_JOBS; count++) await stage.enqueue({ longMs: 100 })
  const deadlineMs = Date.now() + POISON_MAX_MS
  const seen = new Set<number>()
  let isOver = false
  while (!isOver && Date.now() < deadlineMs && robbed.length < DEATHS_MAX) {
    for (const { pid, endedMs } of workers.filter(({ isAlive, pid }) => !isAlive && !seen.has(pid))) {
      seen.add(pid)
      // While the one before it was being replaced, perhaps.
      robbed.push({ pid, fromMs: endedMs!, toMs: endedMs! })
      await stage.startWorker()
    }
    isOver = awaitedOf(stage.system, await stage.system.inspect(stage.place)) === 0
    if (!isOver) await wait(LOOK_MS)
  }
  const flaws = [
    ...(isOver ? [] : ['the pill was not given up in time']),
    ...(robbed.length > DEATHS_GOOD ? [`the pill killed ${robbed.length} workers`] : []),
  ]
  return { atMs, backMs: Date.now(), robbed, failed: [pill], flaws }
}
