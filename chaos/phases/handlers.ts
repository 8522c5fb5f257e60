// What handlers do to their worker: they do not end when they are told to, or use up its memory.
import { until } from '../../tests/postgres/faults/until.ts'
import { robbedByDeadline, slotsFreed } from '../checks/slots.ts'
import type { Overrun } from '../checks/slots.ts'
import type { Scenario, Struck } from '../scenario.ts'
import { CONCURRENCY } from '../stage.ts'
import type { Stage } from '../stage.ts'
import { busy } from './workers.ts'

const EVERYWHERE = ['postgres', 'redis', 'hybrid'] as const
const DEADLINE_MS = 1_000
/** The first runs end one after the other while the second ones are under way, and when they are over. */
const FIRST_MS = 3_200
const FIRST_STEP_MS = 100
const SECOND_MS = 500
/** Each needs a slot of its own. */
const WAITING_MS = 1_500
const HEAP_MAX_MIB = 64

export const HANDLER_SCENARIOS: readonly Scenario[] = [
  {
    name: 'handler-past-deadline',
    says: 'handlers in every slot of a worker pass their deadline of a second, ignore the abort signal, and answer after the next run has begun',
    backends: EVERYWHERE,
    peers: 'asked',
    among: ['pg-boss'],
    ratePerS: 0,
    crew: () => [{}],
    interrupts: true,
    strike: overrun,
  },
  {
    name: 'out-of-memory',
    says: `a handler uses up the heap of its worker (${HEAP_MAX_MIB} MiB), which ends in the middle of its other jobs and is started again`,
    backends: EVERYWHERE,
    peers: 'asked',
    interrupts: true,
    async strike(stage) {
      const victim = await stage.startWorker({ heapMaxMiB: HEAP_MAX_MIB })
      await busy(stage, victim.pid)
      const atMs = Date.now()
      victim.tell('exhaust')
      await until(() => !victim.isAlive, 'a heap to be full')
      const deadMs = Date.now()
      if (!/heap out of memory|OOM/.test(victim.words))
        throw new Error(`it died of something else: ${victim.lastWords}`)
      // From the run that did it: it blocks the loop, so whatever ran beside it did not end either.
      const started = stage.books().runs.filter(({ pid }) => pid === victim.pid)
      const fromMs = Math.max(atMs, ...started.map(({ startMs }) => startMs))
      await stage.startWorker({ heapMaxMiB: HEAP_MAX_MIB })
      return { atMs, backMs: Date.now(), robbed: [{ pid: victim.pid, fromMs, toMs: deadMs }] }
    },
  },
]

async function overrun(stage: Stage): Promise<Struck> {
  const atMs = Date.now()
  const job = { longMs: SECOND_MS, timeoutMs: DEADLINE_MS }
  const overrunning = await Promise.all(
    Array.from({ length: CONCURRENCY }, (_, no) => stage.enqueue({ ...job, firstMs: FIRST_MS + no * FIRST_STEP_MS })),
  )
  const first = new Set(overrunning)
  const runs = () => stage.books().runs.filter(({ id }) => first.has(id))
  await until(() => new Set(runs().map(({ id }) => id)).size === CONCURRENCY, 'a handler in every slot')
  const waiting = await Promise.all(Array.from({ length: CONCURRENCY }, () => stage.enqueue({ longMs: WAITING_MS })))
  const facts: Overrun = { overrunning, waiting, deadlineMs: DEADLINE_MS }
  const ended = (): number => new Set(runs().flatMap(({ id, endMs }) => (endMs === undefined ? [] : [id]))).size
  const hasAllEnded = (): boolean => ended() === CONCURRENCY && runs().every(({ endMs }) => endMs !== undefined)
  await until(hasAllEnded, 'all of them to end')
  return {
    atMs,
    backMs: Date.now(),
    robbed: robbedByDeadline(stage.books(), facts),
    findings: (books) => slotsFreed(books, facts),
  }
}
