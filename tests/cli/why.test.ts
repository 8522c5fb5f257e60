// `millrace why`: every place a job can be in has its words, and nothing is claimed that is not known.
import { describe, expect, test } from 'vitest'
import type { Reason, WhyFacts } from '../../src/cli/why-facts.ts'
import { explain } from '../../src/cli/why.ts'
import { JOB_STATUSES } from '../../src/index.ts'
import type { JobId, WorkerId } from '../../src/index.ts'
import { UNKNOWN_ID, boom, eventually, flaky, mail, noop, setup, workOff } from './harness.ts'

const NOW = Date.UTC(2030, 0, 1, 12)
const MINUTE = 60_000
const id = (last: number): JobId => `019f0000-0000-7000-8000-00000000000${last}` as JobId
const at = (ms: number): Date => new Date(NOW + ms)

type Job = WhyFacts['job']
type Queue = NonNullable<WhyFacts['queue']>
type SeenWorker = NonNullable<WhyFacts['workers']>[number]

const JOB: Job = {
  id: id(1),
  connection: 'default',
  queue: 'mail',
  name: 'send-mail',
  payload: null,
  priority: 100,
  status: 'queued',
  waitsFor: null,
  attemptCount: 0,
  maxAttempts: 3,
  crashCount: 0,
  timeoutMs: 5 * MINUTE,
  runAt: at(-MINUTE),
  enqueuedAt: at(-MINUTE),
  updatedAt: at(-MINUTE),
  startedAt: null,
  finishedAt: null,
  lastError: null,
  result: null,
  progress: null,
  worker: null,
  batch: null,
  tags: [],
  meta: null,
  group: null,
  limitKey: null,
  uniqueKey: null,
  parents: [],
  schedule: null,
  cancelRequested: false,
  replayOf: null,
  replayedAt: null,
  replayedBy: null,
  replayedInto: null,
}

const NO_LIMITS: Queue['limits'] = { concurrency: null, rate: null, perKeyConcurrency: null, perKeyRate: null }
const QUEUE: Queue = {
  name: 'mail',
  connection: 'default',
  paused: false,
  priority: 100,
  attempts: 3,
  retry: null,
  limits: NO_LIMITS,
  retention: { completedMs: null, failedMs: null, cancelledMs: null },
  lowerLaneShare: 16,
  lanes: [50, 150],
  createdAt: at(-MINUTE),
  version: 1,
}
const WORKER: SeenWorker = {
  id: 'w-1' as WorkerId,
  connection: 'default',
  host: 'web-3',
  pid: 42,
  queues: ['mail'],
  concurrency: 10,
  state: 'alive',
  beat: 9,
  running: 3,
  blockedMs: 0,
  startedAtMs: NOW - MINUTE,
  lastBeatAtMs: NOW - 1_000,
}
const FACTS: WhyFacts = {
  nowMs: NOW,
  job: JOB,
  queue: QUEUE,
  workers: [WORKER],
  parents: { open: [], unseen: 0 },
  groupAhead: null,
  queueUse: null,
  keyUse: null,
  ahead: { count: 0, atLeast: false },
  attempts: [],
}
const ERROR = { name: 'Error', message: 'not today', class: 'unknown' } as const
const RATE = { limit: 100, perMs: MINUTE, burst: 2 }
const use = (slotsUsed: number, slotsLimit: number | null, waiting: number, nextTokenInMs: number | null = null) => {
  return { slotsUsed, slotsLimit, waiting, nextTokenInMs }
}

interface Case {
  readonly title: string
  readonly job?: Partial<Job>
  readonly facts?: Partial<WhyFacts>
  readonly codes: readonly string[]
  readonly says: string
  readonly fix?: string
}

const CASES: readonly Case[] = [
  {
    title: 'a ready job that is next',
    codes: ['ready'],
    says: 'it is ready and next in line: a worker takes it as soon as one has a free slot',
  },
  {
    title: 'a ready job behind others',
    facts: { ahead: { count: 12, atLeast: false } },
    codes: ['ahead'],
    says: 'behind 12 jobs of queue mail that are more urgent (its priority is 100) or came before it',
  },
  {
    title: 'a ready job behind more than were counted',
    facts: { ahead: { count: 1_000, atLeast: true } },
    codes: ['ahead'],
    says: 'behind 1000 or more jobs',
  },
  {
    title: 'a ready job while all workers are busy',
    facts: { workers: [{ ...WORKER, running: 10 }] },
    codes: ['ready', 'workers-busy'],
    says: 'all 10 slots of the 1 live worker that serves queue mail are busy',
  },
  {
    title: 'a paused queue',
    facts: { queue: { ...QUEUE, paused: true } },
    codes: ['queue-paused'],
    says: 'queue mail is paused',
    fix: 'millrace queues resume mail',
  },
  {
    title: 'no worker at all',
    facts: { workers: [] },
    codes: ['no-worker'],
    says: 'no worker is alive',
    fix: 'millrace work --queue mail',
  },
  {
    title: 'workers for other queues, on other connections, or silent',
    facts: {
      workers: [
        { ...WORKER, queues: ['other'] },
        { ...WORKER, connection: 'second' },
        { ...WORKER, lastBeatAtMs: NOW - MINUTE },
        { ...WORKER, state: 'dead' },
      ],
    },
    codes: ['no-worker'],
    says: 'none of the 2 live workers serves queue mail',
  },
  {
    title: 'a paused queue without a worker: both are to be repaired',
    facts: { queue: { ...QUEUE, paused: true }, workers: [] },
    codes: ['queue-paused', 'no-worker'],
    says: 'queue mail is paused',
  },
  {
    title: 'a ready job whose queue has used up its rate',
    facts: { queue: { ...QUEUE, limits: { ...NO_LIMITS, rate: RATE } }, queueUse: use(0, null, 0, 4_000) },
    codes: ['ready', 'rate'],
    says: 'queue mail may start 100 per 1m; the next start is free in 4s',
    fix: 'millrace queues set mail --rate',
  },
  {
    title: 'a delay',
    job: { status: 'scheduled', waitsFor: 'delay', runAt: at(5 * MINUTE) },
    codes: ['delay'],
    says: 'it is scheduled until 2030-01-01T12:05:00.000Z, in 5m',
  },
  {
    title: 'a delay in a paused queue that nobody serves: what would keep it then is said now',
    job: { status: 'scheduled', waitsFor: 'delay', runAt: at(5 * MINUTE) },
    facts: { queue: { ...QUEUE, paused: true }, workers: [] },
    codes: ['delay', 'queue-paused', 'no-worker'],
    says: 'it is scheduled until',
  },
  {
    title: 'a retry',
    job: { status: 'scheduled', waitsFor: 'retry', runAt: at(30_000), attemptCount: 1, lastError: ERROR },
    codes: ['retry'],
    says: 'it waits for its next try until 2030-01-01T12:00:30.000Z, in 30s: attempt 1 of 3 failed with Error: not today',
  },
  {
    title: 'a snooze',
    job: { status: 'scheduled', waitsFor: 'snooze', runAt: at(MINUTE) },
    codes: ['snooze'],
    says: 'its handler put it off until',
  },
  {
    title: 'a place in a rate',
    job: { status: 'scheduled', waitsFor: 'rate', runAt: at(MINUTE), limitKey: 'k' },
    facts: { queue: { ...QUEUE, limits: { ...NO_LIMITS, perKeyRate: RATE } }, keyUse: use(0, null, 0, 500) },
    codes: ['rate'],
    says: 'key k may start 100 per 1m; the next start is free in 500ms',
    fix: '--key-rate',
  },
  {
    title: 'a time that has come while nobody promotes',
    job: { status: 'scheduled', waitsFor: 'delay', runAt: at(-MINUTE) },
    facts: { workers: [] },
    codes: ['promotion-late', 'no-worker'],
    says: 'it waits since its time came 1m ago, for somebody to promote it',
    fix: 'start a worker',
  },
  {
    title: 'parents',
    job: { status: 'blocked', waitsFor: 'parents', parents: [id(2), id(3)] },
    facts: { parents: { open: [{ id: id(2), name: 'encode', status: 'running' }], unseen: 2 } },
    codes: ['parents'],
    says: `it waits for 3 jobs to complete first: encode ${id(2)} is running`,
    fix: `millrace why ${id(2)}`,
  },
  {
    title: 'a group',
    job: { status: 'blocked', waitsFor: 'group', group: 'customer-7' },
    facts: { groupAhead: { ...JOB, id: id(4), status: 'running' } },
    codes: ['group'],
    says: `its turn in group customer-7, whose jobs run one at a time, in order: ${id(4)} goes first and is running`,
    fix: `millrace why ${id(4)}`,
  },
  {
    title: 'a slot of the queue',
    job: { status: 'blocked', waitsFor: 'queue-slot' },
    facts: { queue: { ...QUEUE, limits: { ...NO_LIMITS, concurrency: 5 } }, queueUse: use(5, 5, 12) },
    codes: ['queue-slot'],
    says: 'it waits for a slot of queue mail: 5 of 5 are in use, and 12 jobs wait for one',
    fix: 'millrace queues set mail --concurrency',
  },
  {
    title: 'a slot of the queue whose use is not known',
    job: { status: 'blocked', waitsFor: 'queue-slot' },
    facts: { queue: { ...QUEUE, limits: { ...NO_LIMITS, concurrency: 5 } } },
    codes: ['queue-slot'],
    says: 'it waits for a slot of queue mail, which has 5',
  },
  {
    title: 'a slot of a key',
    job: { status: 'blocked', waitsFor: 'key-slot', limitKey: 'k' },
    facts: { keyUse: use(1, 1, 1) },
    codes: ['key-slot'],
    says: 'it waits for a slot of key k in queue mail: 1 of 1 are in use, and 1 job waits for one',
    fix: '--key-concurrency',
  },
  {
    title: 'a run on a live worker',
    job: { status: 'running', worker: WORKER.id, startedAt: at(-20_000), attemptCount: 1 },
    codes: ['running', 'worker-alive'],
    says: 'it runs since 2030-01-01T11:59:40.000Z, 20s on worker w-1, attempt 2 of 3',
  },
  {
    title: 'a run on a worker whose loop stands still',
    job: { status: 'running', worker: WORKER.id, startedAt: at(-20_000) },
    facts: { workers: [{ ...WORKER, blockedMs: 8_000 }] },
    codes: ['running', 'worker-alive'],
    says: 'process 42 on web-3, last heard of 1s ago, but its event loop has stood still for 8s',
  },
  {
    title: 'a run on a dead worker',
    job: { status: 'running', worker: WORKER.id, startedAt: at(-20_000) },
    facts: { workers: [{ ...WORKER, lastBeatAtMs: NOW - 2 * MINUTE }] },
    codes: ['running', 'worker-dead'],
    says: 'its worker has not been heard of for 2m: the job is given to another one',
    fix: 'millrace work',
  },
  {
    title: 'a run on a worker that is forgotten',
    job: { status: 'running', worker: 'w-9' as WorkerId, startedAt: at(-20_000) },
    codes: ['running', 'worker-dead'],
    says: 'its worker is not known any more',
  },
  {
    title: 'a run that is to be cancelled and is late',
    job: { status: 'running', worker: WORKER.id, startedAt: at(-10 * MINUTE), cancelRequested: true },
    codes: ['running', 'cancel-requested', 'past-timeout', 'worker-alive'],
    says: 'it is past its timeout of 5m',
  },
  {
    title: 'completed',
    job: { status: 'completed', finishedAt: at(-MINUTE), attemptCount: 1 },
    codes: ['completed'],
    says: 'it completed 1m ago after 1 attempt',
  },
  {
    title: 'cancelled, with the words of whoever did it',
    job: { status: 'cancelled', finishedAt: at(-MINUTE), lastError: { ...ERROR, message: 'not wanted' } },
    codes: ['cancelled'],
    says: 'it was cancelled 1m ago: not wanted',
  },
  {
    title: 'failed with all attempts used up',
    job: { status: 'failed', finishedAt: at(-MINUTE), attemptCount: 3, lastError: ERROR },
    codes: ['failed'],
    says: 'it failed 1m ago, all 3 attempts are used up: Error: not today',
    fix: `when the cause is gone: millrace dead replay ${id(1)}; all that failed so: millrace dead replay --error "not today"`,
  },
  {
    title: 'failed for good at once',
    job: { status: 'failed', finishedAt: at(-MINUTE), attemptCount: 1, lastError: { ...ERROR, class: 'validation' } },
    codes: ['failed'],
    says: 'after 1 attempt of 3, because its error is permanent',
    fix: 'the same input fails again',
  },
  {
    title: 'failed before its attempts were used up, where a worker allows no more',
    job: { status: 'failed', finishedAt: at(-MINUTE), attemptCount: 2, lastError: { ...ERROR, class: 'network' } },
    codes: ['failed'],
    says: 'after 2 attempts of 3, because its retry policy or its worker allows no more',
    fix: 'when the cause is gone',
  },
  {
    title: 'failed with an error of the catalogue',
    job: { status: 'failed', finishedAt: at(-MINUTE), attemptCount: 3, lastError: { ...ERROR, code: 'JOB_TIMEOUT' } },
    codes: ['failed'],
    says: 'Error (JOB_TIMEOUT): not today',
    fix: 'Raise `timeout`, or make the work smaller. Then: millrace dead replay',
  },
  {
    title: 'failed as poison, with different errors, and replayed since',
    job: {
      status: 'failed',
      finishedAt: at(-MINUTE),
      attemptCount: 3,
      crashCount: 3,
      lastError: ERROR,
      replayedInto: id(7),
    },
    facts: { attempts: [attempt('a'), attempt('b')] },
    codes: ['failed', 'crashes', 'different-errors', 'replayed'],
    says: 'it ended the life of its worker 3 times',
    fix: `millrace why ${id(7)}`,
  },
]

function attempt(message: string): WhyFacts['attempts'][number] {
  const none = { worker: null, startedAt: null, finishedAt: null, durationMs: null, note: null }
  return { jobId: id(1), attempt: 1, status: 'retry', error: { ...ERROR, message }, ...none }
}

describe('explain', () => {
  test.each(CASES)('$title', ({ job, facts, codes, says, fix }) => {
    const reasons = explain({ ...FACTS, ...facts, job: { ...JOB, ...job } })
    expect(reasons.map(({ code }) => code)).toEqual(codes)
    expect(reasons.map((reason) => reason.says).join('\n')).toContain(says)
    if (fix !== undefined) expect(reasons.map((reason) => reason.fix).join('\n')).toContain(fix)
  })

  test('has words for every status, even when nothing is known', () => {
    for (const status of JOB_STATUSES) {
      const reasons = explain({ ...FACTS, queue: null, workers: [], ahead: null, job: { ...JOB, status } })
      expect(reasons.length, status).toBeGreaterThan(0)
      for (const { says } of reasons) expect(says, status).not.toMatch(/undefined|null|NaN/)
    }
  })
})

describe('the command', () => {
  test('finds what keeps a job, through the client', async () => {
    const { mill, run } = await setup()
    const why = async (jobId: string): Promise<readonly Reason[]> =>
      (await run(['why', jobId, '--json'])).json['reasons'] as readonly Reason[]
    await mill.queues.configure('mail', { concurrency: 1, perKey: { concurrency: 1 } })
    const first = await mill.enqueue(noop, undefined, { group: 'g' })
    const second = await mill.enqueue(noop, undefined, { group: 'g' })
    const child = await mill.enqueue(noop, undefined, { after: first })
    const slot = await mill.enqueue(mail, { to: 'a' })
    const waiting = await mill.enqueue(mail, { to: 'b' })
    const later = await mill.enqueue(noop, undefined, { delay: '1h' })
    const urgent = await mill.enqueue(noop, undefined, { priority: 'low' })

    expect(await why(first.id)).toMatchObject([{ code: 'no-worker', says: 'no worker is alive' }])
    expect((await why(second.id))[0]).toMatchObject({
      code: 'group',
      says: expect.stringContaining(first.id) as string,
    })
    expect((await why(child.id))[0]).toMatchObject({
      code: 'parents',
      says: expect.stringContaining(`noop ${first.id} is queued`) as string,
    })
    expect((await why(slot.id))[0]?.code).toBe('no-worker')
    expect((await why(waiting.id))[0]).toMatchObject({
      code: 'queue-slot',
      says: expect.stringContaining('1 of 1 are in use, and 1 job waits') as string,
    })
    expect((await why(later.id))[0]?.code).toBe('delay')
    await mill.queues.pause('default')
    expect((await why(urgent.id))[0]?.code).toBe('queue-paused')
  })

  test('counts who goes first', async () => {
    const { mill, run, backend } = await setup()
    await mill.enqueue(noop)
    await mill.enqueue(noop, undefined, { priority: 'critical' })
    const { id: jobId } = await mill.enqueue(noop)
    await mill.enqueue(noop)
    // A worker that is registered and takes nothing.
    await backend.workers.register({ id: 'idle' as WorkerId, host: 'h', pid: 1, queues: ['default'], concurrency: 1 })
    const { out } = await run(['why', jobId])
    expect(out).toContain('behind 2 jobs of queue default')
    expect(out).toContain('    try: more workers')
  })

  test('tells how a job ended', async () => {
    const { mill, run } = await setup()
    const failed = await mill.enqueue(boom, 'disk full')
    const done = await mill.enqueue(noop)
    const retried = await mill.enqueue(flaky)
    await workOff(mill, [failed.id, done.id])
    await eventually(async () => (await mill.jobs.get(retried))?.status).toBe('scheduled')
    expect((await run(['why', failed.id])).out).toContain(`${failed.id} boom in fragile, failed\n  it failed`)
    expect((await run(['why', failed.id])).out).toContain('Error: disk full')
    expect((await run(['why', done.id])).out).toContain('it completed')
    expect((await run(['why', retried.id])).out).toContain('attempt 1 of 3 failed with Error: not today')
  })

  test('ends with 3 for a job that is not there', async () => {
    const { run } = await setup()
    expect(await run(['why', UNKNOWN_ID])).toMatchObject({ code: 3 })
    expect(await run(['why', 'x'])).toMatchObject({ code: 2 })
  })
})
