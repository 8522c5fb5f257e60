// The policy as a table: what each ending of a run means for its job.
import { describe, expect, test } from 'vitest'
import { decideExpiry, decideOutcome, runsAlone, withinAttempts } from './decide.ts'
import { EDGES } from './edges.ts'
import type { Edge } from './edges.ts'
import type { JobId, LeaseNumber, StoredJob } from './job.ts'
import type { Outcome } from './outcome.ts'
import { DEFAULT_POLICY } from './policy.ts'
import { customRetry } from './retry.ts'

const run = { id: 'j' as JobId, lease: 7 as LeaseNumber, attemptCount: 0, maxAttempts: 3, crashCount: 0 }
const lastRun = { ...run, attemptCount: 2 }
const decide = (facts: typeof run, outcome: Outcome) =>
  decideOutcome(facts, { outcome, ranMs: 5, nowMs: 0 }, DEFAULT_POLICY, () => 0)
const threw = (error: unknown): Outcome => ({ kind: 'threw', error })

const ENDINGS: readonly [string, typeof run, Outcome, object][] = [
  [
    'a result completes',
    run,
    { kind: 'done', result: '1' },
    { edge: 'complete', to: 'completed', result: '1', attempt: 'count' },
  ],
  ['an error is retried by the policy', run, threw(new Error('x')), { edge: 'retry', to: 'scheduled', delayMs: 1_000 }],
  [
    'the second retry waits longer',
    { ...run, attemptCount: 1 },
    threw(new Error('x')),
    { edge: 'retry', delayMs: 2_000 },
  ],
  ['the last attempt fails', lastRun, threw(new Error('x')), { edge: 'fail', to: 'failed', attempt: 'count' }],
  ['a 4xx is never retried', run, threw({ status: 404 }), { edge: 'fail', error: { class: 'client' } }],
  [
    'Retry-After is obeyed',
    run,
    threw({ status: 429, headers: { 'retry-after': '7' } }),
    { edge: 'retry', delayMs: 7_000 },
  ],
  ['exhaustion waits half an hour', run, threw({ code: 'ENOSPC' }), { edge: 'retry', delayMs: 30 * 60_000 }],
  ['a timeout is retried', run, { kind: 'timed-out', timeoutMs: 9 }, { edge: 'retry', error: { class: 'timeout' } }],
  ['fail() is for good', run, { kind: 'fail', error: new Error('x') }, { edge: 'fail', error: { class: 'permanent' } }],
  [
    'retryAfter() counts',
    run,
    { kind: 'retry-after', delayMs: 5, reason: 'r' },
    { edge: 'retry', delayMs: 5, attempt: 'count' },
  ],
  ['retryAfter() ends with the attempts', lastRun, { kind: 'retry-after', delayMs: 5, reason: 'r' }, { edge: 'fail' }],
  ['cancel() cancels', run, { kind: 'cancel', reason: 'r' }, { edge: 'cancelRunning', to: 'cancelled', note: 'r' }],
]
const FREE_OF_CHARGE: readonly Outcome[] = [
  { kind: 'snooze', delayMs: 5, reason: 'r' },
  { kind: 'release', reason: 'r' },
  { kind: 'returned' },
  { kind: 'deferred', waitMs: 5 },
]

describe('decideOutcome', () => {
  test.each(ENDINGS)('D6 %s', (_, facts, outcome, expected) => {
    expect(decide(facts, outcome)).toMatchObject({ jobId: 'j', guard: { lease: 7 }, ...expected })
  })

  test.each(FREE_OF_CHARGE)('D6 $kind burns no attempt', (outcome) => {
    expect(decide(lastRun, outcome)).not.toHaveProperty('attempt')
  })

  test('every ending names its lease, and every one that goes on says how it ends when cancellation was asked for', () => {
    for (const outcome of [...ENDINGS.map(([, , one]) => one), ...FREE_OF_CHARGE]) {
      const transition = decide(run, outcome)
      const { lease, to }: Edge = EDGES[transition.edge]
      expect(lease).toBe(true)
      expect(to).toContain(transition.to)
      const endsAnyway = transition.edge === 'complete' || transition.edge === 'cancelRunning'
      const unstarted = transition.edge === 'return' || transition.edge === 'defer'
      const expected = endsAnyway ? undefined : unstarted ? 'cancelUnstarted' : 'cancelRunning'
      expect(transition.ifCancelRequested?.edge).toBe(expected)
    }
  })
})

describe('decideExpiry', () => {
  const job = { ...run, maxAttempts: 10, worker: 'w' } as unknown as StoredJob
  const after = (crashCount: number, maxAttempts = 10) =>
    decideExpiry({ ...job, crashCount, maxAttempts } as StoredJob, DEFAULT_POLICY, () => 0)

  test('D8 the first crash is tried again at once, the second waits, the third is poison', () => {
    expect(after(0)).toMatchObject({ edge: 'expire', to: 'queued', crash: true, attempt: 'count' })
    expect(after(1)).toMatchObject({ edge: 'expire', to: 'scheduled' })
    expect(after(2)).toMatchObject({ edge: 'expireForGood', to: 'failed', note: 'poison', error: { code: 'POISON' } })
    expect([0, 1, 2, 3].map((crashCount) => runsAlone({ crashCount }))).toEqual([false, false, true, true])
  })

  test('D13 a lapsed visibility is an attempt and no crash, and giving up is obeyed', () => {
    const lapsed = decideExpiry({ ...job, crashCount: 2 } as StoredJob, DEFAULT_POLICY, () => 0, 'visibility-lapsed')
    expect(lapsed).toMatchObject({ edge: 'expire', attempt: 'count', error: { class: 'timeout' } })
    expect(lapsed).not.toHaveProperty('crash')
    const never = { retry: customRetry(() => null) }
    expect(decideExpiry({ ...job, crashCount: 1 } as StoredJob, never, () => 0).edge).toBe('expireForGood')
  })

  test('D8 without attempts left the first crash is the last', () => {
    expect(after(0, 1)).toMatchObject({ edge: 'expireForGood', error: { code: 'WORKER_DIED', class: 'crash' } })
  })
})

test('P1 a worker that allows fewer attempts makes its run the last one; what came before does not count twice', () => {
  expect(withinAttempts(run, Infinity)).toBe(run)
  expect(withinAttempts(run, 3)).toBe(run)
  expect(withinAttempts(run, 2).maxAttempts).toBe(2)
  // The third run of a job that this worker allows one attempt: it still is a run, and the last.
  expect(withinAttempts({ ...run, attemptCount: 2, maxAttempts: 9 }, 1).maxAttempts).toBe(3)
})
