// Every fault of scenarios.ts once, in short. `tests/chaos/main.ts` runs them as often as one likes.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMPILE_MAX_MS, compiledFixtures } from '../postgres/faults/start-process.ts'
import { play } from './play.ts'
import { SCENARIOS } from './scenarios.ts'
import { startServers } from './stage.ts'
import type { Servers } from './stage.ts'

let servers: Servers

beforeAll(async () => {
  await compiledFixtures()
  servers = await startServers()
}, COMPILE_MAX_MS)
afterAll(() => servers.close())

describe('H2 H3 hybrid under load', () => {
  test.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    '%s: nothing is lost, no stale result is applied, no job of a live worker starts again',
    { timeout: 120_000 },
    async (_, scenario) => {
      const verdict = await play(servers, scenario, { backend: 'hybrid', goneMs: 2_000, jobs: 300 })
      expect(verdict).toMatchObject({ lost: 0, stale: 0, unexpected: 0, repeated: 0, ok: true })
    },
  )
})
