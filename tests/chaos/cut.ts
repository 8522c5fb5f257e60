// The cut of `npm run chaos` for the tests: one short pass of each scenario, on the backend where it bites most.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SCENARIOS } from '../../chaos/phases/catalogue.ts'
import { play } from '../../chaos/play.ts'
import { TIMES } from '../../chaos/scenario.ts'
import { startServers } from '../../chaos/servers.ts'
import type { Servers } from '../../chaos/servers.ts'
import { programOn } from '../../chaos/start-process.ts'
import type { Program } from '../../chaos/start-process.ts'
import type { Backend } from '../../chaos/system.ts'
import { millrace } from '../../chaos/systems/millrace.ts'

const COMPILE_MAX_MS = 120_000
const CELL_MAX_MS = 120_000

/** Scenarios by the backend that plays them. */
export const CUT: Readonly<Record<Backend, readonly string[]>> = {
  postgres: [
    'baseline',
    'worker-stopped',
    'worker-drained',
    'handler-past-deadline',
    'high-load',
    'leader-at-tick',
    'workers-reconnect',
    'postgres-restart',
    'pg-backend-kill',
    'idle-in-tx',
    'active-readers',
    'postgres-failover-async',
    'disk-full',
    'lost-commit-reply',
    'link-cut',
  ],
  redis: [
    'kill-worker-short-ttl',
    'repeated-kill',
    'batch-killed',
    'poison-pill',
    'out-of-memory',
    'redis-restart',
    'redis-full',
    'link-blackhole',
    'lost-script-reply',
  ],
  hybrid: [
    'kill-worker',
    'loop-blocked',
    'clock-skew',
    'due-at-once',
    'postgres-crash',
    'pool-exhaustion',
    'postgres-failover',
    'redis-wipe',
    'redis-restart-empty',
    'redis-old-snapshot',
    'replica-promoted',
    'redis-gone',
    'redis-evicts',
    'link-latency',
    'link-swallow',
    'link-reset',
    'relay-killed',
    'producer-killed',
    'garbage-hints',
  ],
}

/** Call it at the top of a test file. */
export function playCut(backend: Backend): void {
  let servers: Servers
  let program: Program

  beforeAll(async () => {
    program = await programOn(process.execPath)
    servers = await startServers()
  }, COMPILE_MAX_MS)
  afterAll(() => servers.close())

  test.for(CUT[backend])(
    '%s: nothing is lost, no stale result is applied, no job of a live worker starts again',
    { timeout: CELL_MAX_MS },
    async (name, context) => {
      const scenario = SCENARIOS.find((one) => one.name === name)!
      const why = scenario.isMissing?.()
      if (why !== undefined) context.skip(why)
      const cell = await play({ servers, program, system: millrace, backend, scenario, times: TIMES.short })
      // What the contract gives up was checked, and is in the note.
      const given = scenario.mayLose?.[backend]
      const note = given === undefined || cell.givenUp === 0 ? '' : `contract: ${given}`
      expect(cell).toMatchObject({ note, lost: 0, stale: 0, unexpected: 0, overlaps: 0, ok: true })
      // Order is nothing where nobody waits.
      if (scenario.ratePerS !== 0) expect(cell.groupDepth).toBeGreaterThan(1)
      if (given === undefined) expect(cell).toMatchObject({ givenUp: 0, disorder: 0 })
    },
  )
}
