// The cut of the simulation of the hybrid that every test run makes; `npm run sim -- --hybrid --seeds 1000` makes the long one.
import { expect, test } from 'vitest'
import { runCampaign } from './campaign.ts'
import { simulate } from './simulation.ts'

test('H2 80 seeds of the hybrid: every invariant holds, everything ends, Redis is empty, and every fault and failpoint was hit', async () => {
  const campaign = await runCampaign(
    Array.from({ length: 80 }, (_, index) => index + 305),
    'hybrid',
  )
  expect(campaign.failures).toEqual([])
  const never = (counts: Readonly<Record<string, number>>): readonly string[] =>
    Object.keys(counts).filter((name) => counts[name] === 0)
  expect(never(campaign.faults)).toEqual([])
  expect(never(campaign.failpoints).filter((point) => point.startsWith('hybrid'))).toEqual([])
}, 240_000)

test('a seed of the hybrid replays to the same trace', async () => {
  const [one, again] = [await simulate(7, false, 'hybrid'), await simulate(7, false, 'hybrid')]
  expect([again.traceHash, again.steps]).toEqual([one.traceHash, one.steps])
}, 60_000)
