// Each rule of health fires and does not fire, on facts alone.
import { describe, expect, test } from 'vitest'
import { JOB_STATUSES } from '../core/job.ts'
import type { JobStatus, WorkerId } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { decideHealth } from './health.ts'
import type { HealthFacts } from './health.ts'

const NOW = Date.UTC(2030, 0, 1)
const connection = 'default'

function counts(numbers: Partial<Record<JobStatus, number>>, queue = 'mail', oldestReadyAtMs: number | null = null) {
  const whole = Object.fromEntries(JOB_STATUSES.map((status) => [status, numbers[status] ?? 0]))
  return { queue, connection, oldestReadyAtMs, counts: whole as Record<JobStatus, number> }
}

const WORKER: HealthFacts['workers'][number] = {
  id: 'w1' as WorkerId,
  connection,
  host: 'h',
  pid: 1,
  queues: ['mail'],
  concurrency: 10,
  state: 'alive',
  beat: 1,
  running: 2,
  blockedMs: 0,
  startedAtMs: NOW,
  lastBeatAtMs: NOW,
}
const FINE: HealthFacts = {
  queues: [{ connection, name: 'mail', paused: false }],
  counts: [counts({ queued: 5, running: 2 }, 'mail', NOW - 1_000)],
  workers: [WORKER],
  nowMs: NOW,
  leaders: [{ connection, holder: 'p1' }],
  servers: [{ connection, kind: 'redis', name: 'r:1', pingMs: 1, memory: { usedBytes: 10, maxBytes: 100 } }],
}

describe('O3 rules', () => {
  test('O3 a system that works is ok', () => {
    const report = decideHealth(FINE)
    expect(report).toMatchObject({ state: 'ok', problems: [], deadLetters: 0, queuesLeftOut: 0 })
    expect(report.workers).toEqual({ alive: 1, silent: 0, slots: 10, running: 2 })
    expect(report.totals).toMatchObject({ queued: 5, running: 2, completed: 0 })
  })

  test.each<[string, Partial<HealthFacts>, string, string]>([
    ['no live worker', { workers: [{ ...WORKER, lastBeatAtMs: NOW - 16_000 }] }, 'no-worker', 'degraded'],
    ['no worker for dispatched jobs', { workers: [], counts: [counts({ dispatched: 1 })] }, 'no-worker', 'degraded'],
    ['over an hour of waiting', { counts: [counts({ queued: 1 }, 'mail', NOW - 3_600_001)] }, 'behind', 'degraded'],
    ['nobody who leads', { leaders: [{ connection, holder: null }] }, 'no-leader', 'degraded'],
    [
      'a Redis that is away before a PostgreSQL',
      {
        servers: [
          { connection, kind: 'postgres', name: 'p', pingMs: 1 },
          { connection, kind: 'redis', name: 'r', pingMs: null },
        ],
      },
      'redis-down',
      'degraded',
    ],
    ['a slow server', { servers: [{ connection, kind: 'redis', name: 'r', pingMs: null }] }, 'slow-server', 'ok'],
    ['a store that is away', { down: [{ connection, message: 'refused' }] }, 'store-down', 'failed'],
    ['a store that refuses', { down: [{ connection, message: 'no', isAway: false }] }, 'store-refused', 'failed'],
    ['a deep queue', { counts: [counts({ queued: 10_001 })] }, 'deep', 'ok'],
    ['many dead letters', { counts: [counts({ failed: 101 })] }, 'dead-letters', 'ok'],
    [
      'a full Redis',
      { servers: [{ connection, kind: 'redis', name: 'r', pingMs: 1, memory: { usedBytes: 81, maxBytes: 100 } }] },
      'redis-memory',
      'ok',
    ],
    [
      'a relay that is behind',
      {
        dispatch: [
          {
            connection,
            queue: 'mail',
            mode: 'token',
            epoch: 1,
            windowFill: 0,
            waiting: 0,
            inFlight: 0,
            backlog: 9,
            relayLagMs: 30_001,
          },
        ],
      },
      'relay-lag',
      'ok',
    ],
  ])('O3 %s is told', (_, change, code, state) => {
    const report = decideHealth({ ...FINE, ...change })
    expect(report.problems.map((problem) => problem.code)).toEqual([code])
    expect(report.state).toBe(state)
    expect(report.problems[0]?.severity).toBe(state === 'ok' ? 'warning' : 'critical')
  })

  test('O3 at their limits the rules keep quiet', () => {
    const numbers = { queued: 10_000, failed: 100 }
    const servers = [
      { connection, kind: 'redis', name: 'r', pingMs: 1, memory: { usedBytes: 80, maxBytes: 100 } },
      { connection, kind: 'redis', name: 's', pingMs: 1, memory: { usedBytes: 80, maxBytes: null } },
    ] as const
    const facts = { ...FINE, servers, counts: [counts(numbers, 'mail', NOW - 3_600_000)] }
    expect(decideHealth(facts).problems).toEqual([])
    const paused = [{ connection, name: 'mail', paused: true }]
    const behind = [counts({ queued: 20_000 }, 'mail', NOW - 9_000_000)]
    expect(decideHealth({ ...FINE, workers: [], queues: paused, counts: behind }).problems).toEqual([])
  })

  test('O3 a Redis that keeps the jobs and is away is said once', () => {
    const servers = [{ connection, kind: 'redis', name: 'r', pingMs: null, error: 'refused' }] as const
    const report = decideHealth({ ...FINE, servers, down: [{ connection, message: 'refused' }] })
    expect(report.problems.map(({ code }) => code)).toEqual(['store-down'])
  })

  test('O3 of many queues those with problems and the deepest are kept', () => {
    // Ready in either half of a store.
    const many = Array.from({ length: 50 }, (_, at) =>
      counts({ [at % 2 === 0 ? 'queued' : 'dispatched']: at }, `q${at}`),
    )
    const workers = [{ ...WORKER, queues: many.map(({ queue }) => queue).filter((queue) => queue !== 'q1') }]
    const report = decideHealth({ ...FINE, queues: [], counts: many, workers, queuesMax: 3 })
    expect(report.queues.map(({ queue }) => queue)).toEqual(['q1', 'q48', 'q49'])
    expect(report.queuesLeftOut).toBe(47)
    expect([report.totals.queued, report.totals.dispatched]).toEqual([600, 625])
  })

  test('O3 a thousand problems are not a thousand lines', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => counts({ queued: 1 }, `q${at}`))
    const report = decideHealth({ ...FINE, queues: [], counts: many, workers: [] })
    expect(report.problems).toHaveLength(LIMITS.healthProblemsMax)
  })
})
