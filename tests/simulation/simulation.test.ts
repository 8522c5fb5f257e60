// The cut of the simulation that every test run makes; `npm run sim -- --seeds 1000` makes the long one.
import { describe, expect, test } from 'vitest'
import { runCampaign } from './campaign.ts'
import { simulate } from './simulation.ts'

describe('memory', () => {
  test('200 seeds: every invariant holds, everything ends, and every edge, fault and failpoint was hit', async () => {
    const campaign = await runCampaign(Array.from({ length: 200 }, (_, index) => index + 1))
    expect(campaign.failures).toEqual([])
    expect(campaign.neverHit).toEqual([])
    expect(campaign.minimums.workers).toBeGreaterThanOrEqual(3)
    expect(campaign.minimums.jobs).toBeGreaterThanOrEqual(100)
    expect(campaign.minimums.faults).toBeGreaterThanOrEqual(10)
  }, 240_000)

  test('a seed replays to the same trace, and another seed to another', async () => {
    const [one, again, other] = [await simulate(7), await simulate(7), await simulate(8)]
    expect([again.traceHash, again.steps, again.jobs]).toEqual([one.traceHash, one.steps, one.jobs])
    expect(other.traceHash).not.toBe(one.traceHash)
  }, 30_000)
})
