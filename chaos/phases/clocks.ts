// Wall clocks that are wrong. Nothing may depend on them but what is shown.
import { timeliness } from '../checks/due.ts'
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'

const HOUR_MS = 3_600_000
const DELAYED = 200
/** What maintenance and a busy worker may take, beside a change of the leader. */
const LATE_MAX_MS = 1_000

const [AHEAD, BEHIND] = [{ aheadMs: HOUR_MS }, { aheadMs: -HOUR_MS }]

export const CLOCK_SCENARIOS: readonly Scenario[] = [
  {
    name: 'clock-skew',
    says: 'the clock of one worker is an hour ahead, that of the other an hour behind; each leads for a while, and jobs with a delay come due',
    backends: ['postgres', 'redis', 'hybrid'],
    peers: 'asked',
    goesOn: true,
    crew: () => [AHEAD, BEHIND],
    async strike({ workers, startWorker, enqueue }, { phaseMs, ttlMs }) {
      // Long enough for somebody to be taken for dead, under either leader.
      const spanMs = Math.max(phaseMs, 1.5 * ttlMs)
      const atMs = Date.now()
      const delayed = Array.from({ length: DELAYED }, (_, no) =>
        enqueue({ longMs: 0, dueMs: atMs + 1_000 + Math.round((no * 2 * spanMs) / DELAYED) }),
      )
      await Promise.all(delayed)
      await wait(spanMs)
      // It came first, so it led.
      await workers[0]!.stop()
      await startWorker(AHEAD)
      await wait(spanMs)
      return { atMs, backMs: Date.now(), robbed: [], findings: (books) => timeliness(books, LATE_MAX_MS + ttlMs) }
    },
  },
]
