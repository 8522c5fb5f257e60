// What the pump sends together, and what apart. Only the order is looked at here; the simulator has the rest.
import { expect, test } from 'vitest'
import { decideOutcome } from '../../src/core/decide.ts'
import type { ClaimedJob, JobId, LeaseNumber, LogLine, WorkerId } from '../../src/core/job.ts'
import { LIMITS } from '../../src/core/limits.ts'
import { DEFAULT_POLICY } from '../../src/core/policy.ts'
import type { Transition, Verdict } from '../../src/core/transition.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { ClaimReply, ClaimRequest, JobStore } from '../../src/store/ports.ts'
import { JobRun } from '../../src/worker/job-run.ts'
import { Pump, UNSETTLED_MAX } from '../../src/worker/pump.ts'
import type { Settlement } from '../../src/worker/pump.ts'
import { Reports } from '../../src/worker/reports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { gate } from '../features/support.ts'

const RUNS = LIMITS.applyBatchMax + 100
const LINE: LogLine = { atMs: 0, attempt: 1, level: 'info', message: 'last words' }

/** Nobody looks at the numbers here. */
const UNNUMBERED = { nextClaimNo: () => 1, onLooked: () => undefined, onGivenBack: () => undefined }

test('the end of a run never overtakes its report, however many end at once', async () => {
  const clock = new ManualClock()
  const runtime = createRuntime({ clock })
  const calls: (readonly Transition[])[] = []
  const jobs = {
    apply: async (transitions: readonly Transition[]): Promise<readonly Verdict[]> => {
      calls.push(transitions)
      return transitions.map(() => 'applied' as const)
    },
  } as unknown as JobStore // all that is called without a demand
  const reports: Reports = new Reports({ clock, onWaiting: () => pump.wake() })
  const pump: Pump = new Pump({
    runtime,
    jobs,
    callsMax: 1,
    settlesApart: 'never',
    demand: () => null,
    reports: (most) => reports.take(most),
    onAnswered: () => undefined,
    onReportLost: () => undefined,
    onClaimed: () => undefined,
    onVerdict: ({ run, transition }) => {
      if (run !== null && transition.edge === 'report') run.reportOut = undefined
    },
    isKnown: () => true,
    life: () => null,
    ...UNNUMBERED,
  })
  const runs = Array.from({ length: RUNS }, (_, no) => {
    const claimed = {
      id: `job ${no}` as JobId,
      lease: 1 as LeaseNumber,
      attemptCount: 0,
      maxAttempts: 1,
      crashCount: 0,
    }
    const run = new JobRun(claimed as ClaimedJob, undefined, 'w' as WorkerId, 0, () => undefined) // all that is needed
    run.state = 'ended'
    run.logLines = [LINE]
    return run
  })
  // Who reported last ended first: the reports that find no room are those of the first endings.
  for (const run of runs.toReversed()) reports.ended(run)
  for (const run of runs) {
    const end = { outcome: { kind: 'done', result: null }, ranMs: 1, nowMs: 0 } as const
    pump.settle({ run, transition: decideOutcome(run.claimed, end, DEFAULT_POLICY, () => 0) })
  }
  await pump.flushed()
  const sent = calls.flat()
  expect(calls.every((call) => call.length <= LIMITS.applyBatchMax)).toBe(true)
  expect(sent).toHaveLength(2 * RUNS)
  const reported = new Set<string>()
  for (const { jobId, edge } of sent) {
    if (edge === 'report') reported.add(jobId)
    else expect(reported.has(jobId)).toBe(true)
  }
})

/** A pump over a store whose claims and settlements are calls of their own; settlements wait until they are let go. */
function apart(reports: Settlement[] = []) {
  const clock = new ManualClock()
  const calls = { claims: 0, settled: [] as number[] }
  const settling = gate()
  const jobs = {
    async claim({ settle = [] }: ClaimRequest): Promise<ClaimReply> {
      calls.claims += 1
      expect(settle).toEqual([])
      return { jobs: [], verdicts: [], paused: [] }
    },
    async apply(transitions: readonly Transition[]): Promise<readonly Verdict[]> {
      calls.settled.push(transitions.length)
      await settling.opened
      return transitions.map(() => 'applied' as const)
    },
  } as unknown as JobStore // all that is called here
  let isWanted = false
  const pump = new Pump({
    runtime: createRuntime({ clock }),
    jobs,
    callsMax: 2,
    settlesApart: 'always',
    demand: () => {
      const demand = isWanted ? { worker: 'w' as WorkerId, claimNo: 1, queues: ['q'], limit: 10, stands: false } : null
      isWanted = false
      return demand
    },
    reports: () => reports.splice(0),
    onAnswered: () => undefined,
    onReportLost: () => undefined,
    onClaimed: () => undefined,
    onVerdict: () => undefined,
    isKnown: () => true,
    life: () => null,
    ...UNNUMBERED,
  })
  const end = (count: number): void => {
    for (let no = 0; no < count; no++) pump.settle({ run: null, transition: COMPLETED })
  }
  const claim = async (): Promise<void> => {
    isWanted = true
    pump.wake()
    await clock.breathe()
  }
  return { calls, settling, pump, end, claim }
}

const FACTS = { id: 'job' as JobId, lease: 1 as LeaseNumber, attemptCount: 0, maxAttempts: 1, crashCount: 0 }
const ENDED = { outcome: { kind: 'done', result: null }, ranMs: 1, nowMs: 0 } as const
const COMPLETED = decideOutcome(FACTS, ENDED, DEFAULT_POLICY, () => 0)
const REPORT: Transition = { ...COMPLETED, edge: 'report' }

test('apart, a claim does not wait for settlements, and those gather behind the one under way', async () => {
  const { calls, settling, pump, end, claim } = apart()
  end(2)
  await claim()
  end(3)
  end(4)
  await claim()
  expect(calls).toEqual({ claims: 2, settled: [2] })
  settling.open()
  await pump.flushed()
  expect(calls.settled).toEqual([2, 7])
})

test('apart, many settlements follow those under way in a second and a third call, and no fourth', async () => {
  const { calls, settling, pump, end, claim } = apart()
  for (const count of [1, 99, 1, 100, 500]) {
    end(count)
    await claim()
  }
  expect(calls.settled).toEqual([1, 100, 100])
  settling.open()
  await pump.flushed()
  expect(calls.settled).toEqual([1, 100, 100, 500])
})

test('apart, no other call goes beside reports', async () => {
  const { calls, settling, pump, end, claim } = apart([{ run: null, transition: REPORT }])
  end(1)
  await claim()
  end(500)
  await claim()
  expect(calls.settled).toEqual([2])
  settling.open()
  await pump.flushed()
  expect(calls.settled).toEqual([2, 500])
})

test('apart, nothing more is claimed while too many endings are without an answer', async () => {
  const { calls, settling, pump, end, claim } = apart()
  end(UNSETTLED_MAX)
  await claim()
  const before = calls.claims
  end(1)
  await claim()
  expect([before, calls.claims]).toEqual([0, 0])
  settling.open()
  await pump.flushed()
  expect(calls.claims).toBe(1)
})

/** A pump that doubts what it holds, over a store that answers so. */
function doubtful(jobs: Pick<JobStore, 'holdings'> & Partial<JobStore>) {
  const clock = new ManualClock()
  const pump = new Pump({
    runtime: createRuntime({ clock }),
    jobs: jobs as JobStore, // all that is called here
    callsMax: 2,
    settlesApart: 'never',
    demand: () => null,
    reports: () => [],
    onAnswered: () => undefined,
    onReportLost: () => undefined,
    onClaimed: () => undefined,
    onVerdict: () => undefined,
    isKnown: () => true,
    life: () => 'w' as WorkerId,
    ...UNNUMBERED,
  })
  pump.doubt()
  return { clock, pump }
}

test('a doubt that comes while holdings are being asked for is looked at again', async () => {
  const answer = gate()
  let asked = 0
  const { clock, pump } = doubtful({
    async holdings() {
      asked += 1
      if (asked === 1) await answer.opened
      return []
    },
  })
  await clock.breathe()
  pump.doubt()
  answer.open()
  await clock.breathe()
  await clock.breathe()
  expect(asked).toBe(2)
})

test('endings are not held back while the store cannot say what is held', async () => {
  let asked = 0
  const settled: number[] = []
  const { clock, pump } = doubtful({
    async holdings() {
      asked += 1
      throw new Error('no answer')
    },
    async apply(transitions) {
      settled.push(transitions.length)
      return transitions.map(() => 'applied' as const)
    },
  })
  await clock.breathe()
  pump.settle({ run: null, transition: COMPLETED })
  await clock.advance(200)
  expect(settled).toEqual([1])
  await clock.advance(200)
  expect(asked).toBeGreaterThan(1)
})

test('with a backlog, claims and settlements part; without one they travel together', async () => {
  const clock = new ManualClock()
  const calls: string[] = []
  const settling = gate()
  let isFull = true
  let isWanted = false
  const jobs = {
    async claim({ limit, settle = [] }: ClaimRequest): Promise<ClaimReply> {
      calls.push(`claim+${settle.length}`)
      const found = Array.from({ length: isFull ? limit : 0 }, () => FACTS as unknown as ClaimedJob)
      return { jobs: found, verdicts: settle.map(() => 'applied' as const), paused: [] }
    },
    async apply(transitions: readonly Transition[]): Promise<readonly Verdict[]> {
      calls.push(`settle ${transitions.length}`)
      await settling.opened
      return transitions.map(() => 'applied' as const)
    },
  } as unknown as JobStore // all that is called here
  const pump = new Pump({
    runtime: createRuntime({ clock }),
    jobs,
    callsMax: 2,
    settlesApart: 'backlog',
    demand: () => {
      const demand = isWanted ? { worker: 'w' as WorkerId, claimNo: 1, queues: ['q'], limit: 50, stands: false } : null
      isWanted = false
      return demand
    },
    reports: () => [],
    onAnswered: () => undefined,
    onReportLost: () => undefined,
    onClaimed: () => undefined,
    onVerdict: () => undefined,
    isKnown: () => true,
    life: () => null,
    ...UNNUMBERED,
  })
  const endAndClaim = async (): Promise<void> => {
    pump.settle({ run: null, transition: COMPLETED })
    isWanted = true
    await clock.breathe()
  }
  await endAndClaim()
  await endAndClaim()
  isFull = false
  await endAndClaim()
  settling.open()
  await pump.flushed()
  await endAndClaim()
  await pump.flushed()
  expect(calls).toEqual(['claim+1', 'claim+0', 'settle 1', 'claim+0', 'settle 1', 'claim+1'])
})
