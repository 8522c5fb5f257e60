// More work than before.
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'

export const LOAD_SCENARIOS: readonly Scenario[] = [
  {
    name: 'high-load',
    says: 'half as much load again',
    backends: ['postgres', 'redis', 'hybrid'],
    peers: 'asked',
    goesOn: true,
    ratePerS: 600,
    async strike({ startProducer, load }, { phaseMs }) {
      const more = await startProducer(load.ratePerS / 2)
      const atMs = Date.now()
      await wait(2 * phaseMs)
      await more.stop()
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    // A third more while half as much again comes for two of three phases.
    promise: { ratioMin: 1.2 },
  },
]
