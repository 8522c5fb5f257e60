// Seeds of the hybrid that look at one kind of trouble: short, with little else going wrong, so that the situation a guard is
// for comes up again and again. Every second seed has one; the others have a bit of everything. Which one follows from the
// seed alone, so a seed still says everything.
import type { PlantedBug } from '../../src/core/planted.ts'
import type { CallOdds, FaultKind } from './faults.ts'
import type { Step } from './jobs.ts'

export interface Focus {
  readonly name: string
  /** The planted bugs that its seeds are asked to find. */
  readonly finds: readonly PlantedBug[]
  /** What may happen at all; for faults at moments how often at most. */
  readonly faults: Partial<Record<FaultKind, number>>
  /** Calls that more befalls than others. */
  readonly calls: Readonly<Record<string, Partial<CallOdds>>>
  /** What runs do, one as often as the other. */
  readonly steps: readonly Step[]
  /** Jobs that go on for longer than anything else; one worker has a single slot. */
  readonly longRuns: number
  /** Of jobs that were enqueued a moment ago. */
  readonly cancels: number
  /** More than one process does what a leader does, all the time. */
  readonly everyoneLeads: boolean
  /** How long Redis has to fail before somebody stops asking it. */
  readonly breakerMs: number
  /** How long things go wrong. */
  readonly faultMs: number
  /** Of processes at failpoints, as a multiple of what is usual. */
  readonly crashes: number
}

const NETWORK = { 'request-delayed': 1, 'request-doubled': 1, 'reply-delayed': 1 } as const
const LOSSES = { 'request-lost': 1, 'reply-lost': 1, 'hint-lost': 1 } as const
const CRASHES = { 'crash-at-failpoint': 1 } as const
const SHORT: readonly Step[] = ['sync', 'ok', 'ok', 'slow']
const LONG: readonly Step[] = ['ok', 'slow', 'slow', 'very-slow']
const PLAIN = {
  calls: {},
  steps: SHORT,
  longRuns: 0,
  cancels: 0,
  everyoneLeads: true,
  breakerMs: 250,
  faultMs: 5_000,
  crashes: 0.2,
} as const

export const FOCUSES: readonly Focus[] = [
  {
    ...PLAIN,
    name: 'pushes that are late, lost or doubled',
    finds: ['hybrid-floor-ignored', 'hybrid-pusher-ignored', 'hybrid-audit-without-floor', 'hybrid-push-twice'],
    faults: { ...NETWORK, ...LOSSES, ...CRASHES },
    calls: { 'redis.push': { delayed: 0.3, delayMs: [100, 2_000], doubled: 0.3, lost: 0.05 } },
  },
  {
    ...PLAIN,
    name: 'takes that are late, lost or doubled',
    finds: ['hybrid-claim-number-ignored', 'hybrid-no-self-check', 'hybrid-holdings-keep-number'],
    faults: { ...NETWORK, ...LOSSES, ...CRASHES },
    calls: {
      'redis.take': { delayed: 0.2, delayMs: [250, 700], doubled: 0.1, replyLost: 0.03 },
      // A take that comes late lands between what the session was told and its next take.
      'redis.holdings': { replyDelayed: 0.6, replyDelayMs: [50, 280] },
    },
    steps: LONG,
    crashes: 1,
    breakerMs: 1_500,
  },
  {
    ...PLAIN,
    name: 'hand-overs that are late, lost or doubled',
    finds: ['hybrid-hand-over-not-fenced'],
    faults: { ...NETWORK, ...LOSSES, ...CRASHES },
    // Beyond what the worker waits for them.
    calls: { 'handOvers.listen': { replyDelayed: 0.5, replyDelayMs: [50, 500], doubled: 0.2 } },
  },
  {
    ...PLAIN,
    name: 'Redis is flushed under long runs, and somebody is frozen',
    finds: ['hybrid-adopt-without-marks', 'hybrid-barrier-ignored', 'hybrid-claims-unmarked'],
    faults: { 'redis-flushed': 3, 'redis-flushed-beside-frozen': 4, 'redis-outage': 2, ...LOSSES, ...CRASHES },
    steps: LONG,
  },
  {
    ...PLAIN,
    name: 'Redis is flushed while tokens are on their way to a worker',
    finds: ['hybrid-old-epoch-started'],
    faults: { 'redis-flushed': 12, 'reply-delayed': 1 },
    calls: { 'redis.take': { replyDelayed: 0.5, replyDelayMs: [20, 290] } },
    steps: LONG,
  },
  {
    ...PLAIN,
    name: 'jobs are cancelled while their tokens wait',
    finds: ['hybrid-revoke-ignored', 'hybrid-cancel-without-revoke'],
    faults: { ...NETWORK, ...LOSSES, ...CRASHES },
    steps: LONG,
    cancels: 60,
    crashes: 1,
    everyoneLeads: false,
  },
  {
    ...PLAIN,
    name: 'jobs are cancelled while Redis is flushed and somebody is frozen',
    finds: ['hybrid-cancel-without-barrier'],
    faults: { 'redis-flushed-beside-frozen': 6, ...LOSSES, ...CRASHES },
    steps: LONG,
    cancels: 120,
  },
  {
    ...PLAIN,
    name: 'workers die and are given up, by several at once',
    finds: ['hybrid-reap-live'],
    faults: { ...NETWORK, ...LOSSES, ...CRASHES, crash: 6, pause: 4, partition: 3 },
    calls: { 'redis.take': { delayed: 0.05, delayMs: [100, 4_000] }, 'redis.holdings': { delayed: 0.1 } },
    steps: LONG,
    crashes: 1,
    // A ttl has to pass before anybody is given up.
    faultMs: 8_000,
  },
  {
    ...PLAIN,
    name: 'epochs are opened, lost and opened again',
    finds: ['hybrid-birth-ignored', 'hybrid-unborn-left'],
    faults: { 'redis-reopened': 6, 'redis-flushed': 4, 'postgres-moved': 1, ...NETWORK, ...LOSSES, ...CRASHES },
    calls: {
      'redis.open': { delayed: 0.2, doubled: 0.2, replyLost: 0.1 },
      'ledger.born': { lost: 0.1, replyLost: 0.1 },
    },
    steps: LONG,
    crashes: 0.5,
  },
  {
    ...PLAIN,
    name: 'parts of Redis are lost',
    finds: ['hybrid-torn-ignored'],
    faults: { 'redis-evicted': 10, 'hint-lost': 1, ...CRASHES },
    steps: LONG,
  },
  {
    ...PLAIN,
    name: 'Redis comes back with old data, or as another one',
    finds: ['hybrid-identity-ignored'],
    faults: {
      'redis-old-copy': 4,
      'redis-suffix-lost': 4,
      'redis-other-and-back': 3,
      ...NETWORK,
      ...LOSSES,
      ...CRASHES,
    },
    steps: LONG,
  },
  {
    ...PLAIN,
    name: 'Redis answers and refuses to write',
    finds: ['hybrid-read-heals'],
    faults: { 'redis-read-only': 1, 'hint-lost': 1 },
    faultMs: 12_000,
  },
  {
    ...PLAIN,
    name: 'another Redis answers, and somebody is busy for longer than that matters',
    finds: [],
    faults: { 'redis-other-server': 2, 'hint-lost': 1 },
    longRuns: 4,
    // Who leads asks Redis all the time.
    everyoneLeads: false,
  },
]

/** Null: a bit of everything. */
export function focusOf(seed: number): Focus | null {
  return seed % 2 === 0 ? null : FOCUSES[((seed - 1) / 2) % FOCUSES.length]!
}

/** The n-th seed, from 1 on, that is asked to find this bug. */
export function seedFor(bug: PlantedBug, n: number): number {
  const at = FOCUSES.findIndex(({ finds }) => finds.includes(bug))
  return at < 0 ? n : 2 * (at + (n - 1) * FOCUSES.length) + 1
}
