// Everything that can be measured. A system is loaded only in the process that measures it, so that one
// peer's client never weighs on another's numbers.
import type { Scenario } from './scenario.ts'
import { drain } from './scenarios/drain.ts'
import { enqueueBulk, enqueueSingle } from './scenarios/enqueue.ts'
import { footprint } from './scenarios/footprint.ts'
import { latencyIdle } from './scenarios/latency.ts'
import type { System } from './system.ts'

export const SCENARIOS: readonly Scenario[] = [
  enqueueSingle,
  enqueueBulk,
  drain(1),
  drain(10),
  drain(100),
  latencyIdle,
  footprint,
]

export interface SystemEntry {
  readonly backends: readonly string[]
  /** What survives a crash after an acknowledged write, by backend; stands beside every number. */
  readonly durability: Readonly<Record<string, string>>
  readonly load: () => Promise<System>
}

export const SYSTEMS: Readonly<Record<string, SystemEntry>> = {
  millrace: {
    backends: ['memory'],
    durability: { memory: 'none: memory' },
    load: async () => (await import('./systems/millrace.ts')).millrace,
  },
}

/** One thing to measure. */
export interface Cell {
  readonly system: string
  readonly backend: string
  readonly scenario: string
  readonly jobs: number
}
