// What a scenario is: a load, something that is done to it, and what is promised of ours meanwhile.
import type { Books } from './books.ts'
import type { Robbed } from './checks/delivery.ts'
import type { Span } from './checks/pace.ts'
import type { OwnStores } from './own-stores.ts'
import type { Findings } from './figures.ts'
import type { Look } from './protocol.ts'
import type { Stage } from './stage.ts'
import type { Backend, Place, SideFacts } from './system.ts'

export interface Scenario {
  readonly name: string
  /** One line, for the table of the document. */
  readonly says: string
  /** Where it bites. */
  readonly backends: readonly Backend[]
  /** Whether peers are struck too: only where somebody asks for it, or never, since only Millrace has what it is about. */
  readonly peers: 'usual' | 'asked' | 'never'
  /** Of the usual peers only these, unless somebody asks: the others take minutes to show the same. */
  readonly usually?: readonly string[]
  /** Of the peers only these, as for --only: the others have nothing like it. */
  readonly among?: readonly string[]
  readonly ratePerS?: number
  /** `default`: that of the system; `long`: also where there is no time, since nobody waits for it. Absent: `Times.ttlMs`, in every system that has one. */
  readonly ttl?: 'default' | 'long'
  /** The first workers. Default: two. */
  readonly crew?: (times: Times) => readonly Look[]
  /** PostgreSQL has to take so many connections: it gets a server of its own. */
  readonly connectionsMax?: number
  /** Somebody is robbed in the middle of a job, or the fault was none; of peers too. */
  readonly interrupts?: true
  /** Nothing stops and nobody is refused: there is nothing to recover from, and the rate holds. */
  readonly goesOn?: true
  /** Why it cannot be played here, if so. */
  readonly isMissing?: () => string | undefined
  /** It is played on stores of its own, instead of the usual ones or of a part of them. */
  readonly stores?: (usual: Place) => Promise<OwnStores>
  readonly strike: (stage: Stage, times: Times) => Promise<Struck>
  /** What must hold for Millrace beside what holds always. */
  readonly promise?: Pledge
  /** What the contract of a backend gives up, with its words. */
  readonly mayLose?: Partial<Record<Backend, string>>
}

/** By backend where not all promise the same. */
export type PerBackend = number | Partial<Record<Backend, number>>

export interface Pledge {
  /** Until work goes on; see Cell.recoverySeconds. Default ttl + 5 s where somebody is interrupted, else 1 s. */
  readonly recoveryMaxS?: PerBackend
  /** Of the rate before. Default 0.9 where nothing stops. */
  readonly ratioMin?: PerBackend
  /** So much of the offered rate, so soon after the store was back, until the end of the load. */
  readonly steady?: { readonly share: number; readonly withinS: number }
}

export interface Struck {
  readonly atMs: number
  /** From here on a new start is expected: the fault is over. */
  readonly backMs: number
  /** Whose jobs may start again. */
  readonly robbed: readonly Robbed[]
  /** The store itself has forgotten who had what: whatever anybody ran in this time may start again. */
  readonly forgot?: Span
  /** Acknowledged jobs that must end as failed. */
  readonly failed?: readonly string[]
  /** Acknowledged jobs that the store still had after the fault: whatever the contract gives up, these are not lost. */
  readonly kept?: ReadonlySet<string>
  /** The same of all that were acknowledged before this moment. */
  readonly keptBeforeMs?: number
  /** What else was seen meanwhile that breaks a promise of ours. */
  readonly flaws?: readonly string[]
  /** What this scenario alone can say, from the books as they are in the end, and from what happened beside the load. */
  readonly findings?: (books: Books, side: SideFacts | undefined) => Findings
  /** What is to be ended after the run. */
  readonly close?: () => Promise<void>
}

/** How long things take. */
export interface Times {
  /** Load before the fault, after it, and under a fault that lasts. */
  readonly phaseMs: number
  /** Offered, where a scenario does not say. */
  readonly ratePerS: number
  /** Of the jobs that are there to be interrupted. */
  readonly longMs: number
  /** Where a scenario does not ask for the default. */
  readonly ttlMs: number
  /** Also where it asks for the default: there is no time for that. */
  readonly isAlwaysShort?: boolean
  readonly blockedMs: number
  /** Jobs for one moment, and workers for one store. */
  readonly dueJobs: number
  readonly crowd: number
  /** Of the large batch. */
  readonly batchJobs: number
}

export const TIMES = {
  /** For the tests of the project. */
  short: {
    phaseMs: 1_000,
    ratePerS: 150,
    longMs: 750,
    ttlMs: 2_000,
    isAlwaysShort: true,
    blockedMs: 4_500,
    dueJobs: 8_000,
    crowd: 8,
    batchJobs: 1_000,
  },
  usual: {
    phaseMs: 3_500,
    ratePerS: 300,
    longMs: 1_500,
    ttlMs: 5_000,
    blockedMs: 60_000,
    dueJobs: 50_000,
    crowd: 100,
    batchJobs: 10_000,
  },
  full: {
    phaseMs: 60_000,
    ratePerS: 300,
    longMs: 1_500,
    ttlMs: 5_000,
    blockedMs: 60_000,
    dueJobs: 1_000_000,
    crowd: 100,
    batchJobs: 10_000,
  },
} as const satisfies Readonly<Record<string, Times>>

export type Pace = keyof typeof TIMES

/** As long as time-outs take at these settings, of whatever system; what then still waits for one is told as stuck. */
export const DRAIN_MAX_MS = { short: 20_000, default: 75_000 }

/** Redis was not there for a ttl or longer, from then to now: alone, it takes nobody for alive; the hybrid has PostgreSQL. */
export function unheard(backend: Backend, atMs: number, ttlMs: number): Struck {
  const backMs = Date.now()
  // Until everybody has noticed.
  const forgot = { fromMs: atMs, toMs: backMs + ttlMs }
  return { atMs, backMs, robbed: [], ...(backend === 'redis' && { forgot }) }
}

/** While its log is being synced Redis answers before it has written, and puts off writing for two seconds at most. */
const UNWRITTEN_MAX_MS = 2_000

/** The same, and it came back as it was then: what it had acknowledged before is there. */
export function setBack(backend: Backend, atMs: number, ttlMs: number, sinceMs: number): Struck {
  const { forgot, ...struck } = unheard(backend, atMs, ttlMs)
  const keptBeforeMs = sinceMs - UNWRITTEN_MAX_MS
  return { ...struck, keptBeforeMs, ...(forgot !== undefined && { forgot: { ...forgot, fromMs: sinceMs } }) }
}

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
