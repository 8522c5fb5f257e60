// The autoscaler over time: loads of every shape on a small world of virtual seconds, with the exact steps that follow.
// A reader may check each by hand; docs/autoscaling.md explains the first one.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ScalingOptions } from '../../src/core/scaling-limits.ts'
import { readText } from '../tidy/source.ts'
import { runWorld } from './scaling-world.ts'
import type { World, WorldQueue, WorldStep } from './scaling-world.ts'

const burst =
  (jobs: number, at = 10) =>
  (second: number) =>
    second === at ? jobs : 0
/** 0 to 60 in a second within half an hour, and back. */
const ramp = (second: number) => Math.max(0, Math.min(second, 3_600 - second)) / 30
const sawtooth = (second: number) => (second % 240 < 120 ? 50 : 2)
const MINUTE: ScalingOptions = { cooldown: '1m' }

function alone(seconds: number, queue: WorldQueue, more: Partial<World> & { readonly from?: number } = {}): World {
  const { from = 1, ...rest } = more
  return { pools: { mail: { queues: { mail: queue }, from } }, seconds, ...rest }
}

const TRACES: readonly (readonly [name: string, world: World, lines: string, waitMaxS: number])[] = [
  [
    'burst: 20 000 jobs of a second',
    alone(1_800, { arrivals: burst(20_000), serviceS: 1 }),
    '10s 1→3, 310s 3→5, 610s 5→4, 910s 4→3, 1210s 3→2, 1510s 2→1',
    521,
  ],
  [
    'ramp: to 60 a second and back',
    alone(4_800, { arrivals: ramp, serviceS: 1 }),
    '275s 1→3, 780s 3→5, 1295s 5→7, 1800s 7→9, 2100s 9→8, 2400s 8→7, 2700s 7→6, 3000s 6→5, 3300s 5→4, 3600s 4→3, 3900s 3→2, 4200s 2→1',
    0,
  ],
  [
    'sawtooth: 50 a second for two minutes, 2 for the next two',
    alone(1_800, { arrivals: sawtooth, serviceS: 1 }),
    '5s 1→3, 305s 3→5, 605s 5→4, 905s 4→3, 1205s 3→5, 1505s 5→7',
    85,
  ],
  [
    'long jobs: 60 of ten minutes',
    alone(3_000, { arrivals: burst(60), serviceS: 600 }),
    '10s 1→3, 310s 3→5, 610s 5→7, 910s 7→6, 1210s 6→5, 1510s 5→4, 1810s 4→3, 2110s 3→2, 2410s 2→1',
    600,
  ],
  [
    'idle: five workers and nothing to do',
    alone(2_000, { arrivals: () => 0, serviceS: 1 }, { from: 5 }),
    '5s 5→4, 305s 4→3, 605s 3→2, 905s 2→1',
    0,
  ],
  ['a trickle is no trend', alone(3_600, { arrivals: (s) => (s % 30 === 0 ? 1 : 0), serviceS: 1 }), '', 0],
  [
    'stall: no job ever ends, up to the maximum and no further',
    alone(3_600, { arrivals: () => 5, serviceS: 1e9 }),
    '5s 1→3, 305s 3→5, 605s 5→7, 905s 7→9, 1205s 9→11, 1505s 11→13, 1805s 13→15',
    1_781,
  ],
  [
    'missing metrics: nothing changes while the workers are silent',
    alone(1_200, { arrivals: () => 50, serviceS: 1 }, { isSilent: (s) => s >= 100 && s < 700 }),
    '5s 1→3, 700s 3→5, 1000s 5→7',
    284,
  ],
  [
    'cooldown: the same burst with a minute between steps',
    alone(1_200, { arrivals: burst(5_000), serviceS: 1, scaling: MINUTE }),
    '10s 1→3, 70s 3→5, 130s 5→7, 190s 7→6, 250s 6→5, 310s 5→4, 370s 4→3, 430s 3→2, 490s 2→1',
    124,
  ],
  [
    'two queues of one pool: it shrinks when both allow it',
    {
      pools: {
        both: {
          queues: {
            a: { arrivals: burst(3_000), serviceS: 1, scaling: MINUTE },
            b: { arrivals: (s) => (s < 600 ? 20 : 1), serviceS: 1, scaling: MINUTE },
          },
        },
      },
      seconds: 1_200,
    },
    '5s 1→3, 65s 3→5, 125s 5→7, 185s 7→6, 245s 6→5, 305s 5→4, 365s 4→3, 600s 3→2, 660s 2→1',
    83,
  ],
  [
    'two queues competing for 20 processes: the second one gets its half, as fast as the first one gives',
    {
      pools: {
        a: { queues: { a: { arrivals: () => 200, serviceS: 1, scaling: { ...MINUTE, max: 20, up: { step: 6 } } } } },
        b: {
          queues: {
            b: { arrivals: (s) => (s < 400 ? 1 : 200), serviceS: 1, scaling: { ...MINUTE, max: 20, up: { step: 6 } } },
          },
        },
      },
      seconds: 900,
    },
    '5s a 1→7, 65s a 7→13, 125s a 13→19, 400s a 19→13, 405s b 1→7, 465s a 13→10, 470s b 7→10',
    320,
  ],
  [
    'holding 30 s: 3 000 jobs at once',
    alone(1_200, { arrivals: (s) => (s === 60 ? 3_000 : 2), serviceS: 1, scaling: { maxWait: '30s' } }),
    '60s 1→3, 75s 3→6, 90s 6→12, 105s 12→15, 405s 15→14, 705s 14→13, 1005s 13→12',
    45,
  ],
  [
    'holding 10 s: the ramp, with nobody waiting and no worker too many',
    alone(4_800, { arrivals: ramp, serviceS: 1, scaling: { maxWait: '10s' } }),
    '255s 1→2, 515s 2→3, 755s 3→4, 1035s 4→5, 1275s 5→6, 1535s 6→7, 1775s 7→8, 2130s 8→7, 2430s 7→6, 2730s 6→5, 3030s 5→4, 3330s 4→3, 3630s 3→2, 3930s 2→1',
    0,
  ],
  [
    'holding a minute: long jobs are counted while they run',
    alone(3_600, { arrivals: () => 0.1, serviceS: 600, scaling: { maxWait: '1m' } }),
    '90s 1→2, 180s 2→3, 260s 3→4, 350s 4→5, 430s 5→6, 520s 6→7, 600s 7→8, 620s 8→9',
    0,
  ],
]

describe('traces', () => {
  test.each(TRACES)('P2 %s', (_, world, lines, waitMaxS) => {
    const result = runWorld(world)
    expect(result.lines.join(', ')).toBe(lines)
    expect(result.waitMaxS).toBe(waitMaxS)
    expect(result.workersMax).toBeLessThanOrEqual(20)
    for (const { reasons } of result.steps) expect(reasons.join()).toMatch(/\d/)
  })

  test('P2 each step says why, with its numbers', () => {
    const { steps } = runWorld(TRACES[0]![1])
    expect(steps.map(({ reasons }) => reasons.join(' and '))).toEqual(REASONS)
  })

  test('P2 the worked example of docs/autoscaling.md is what happens', () => {
    const { steps, waitMaxS } = runWorld(TRACES[0]![1])
    const page = readText('docs/autoscaling.md')
    const rows = [...page.matchAll(/^\| (\d+) \| (\d+) → (\d+) \| (.*) \|$/gm)].map(([, ...cells]) => cells)
    const told = steps.map(({ second, from, to, reasons }, index) => {
      return [`${second}`, `${from}`, `${to}`, index < 4 ? reasons.join(' and ') : 'the same']
    })
    expect(rows).toEqual(told)
    expect(page).toContain(`The last job waited ${waitMaxS} seconds.`)
  })
})

const REASONS = [
  '19990 jobs are ready (more than 100) and 1134/s arrive and 0/s are processed (more than 1.5 x)',
  '11010 jobs are ready (more than 100) and 100 % of the slots are busy (more than 85 %) and the oldest job waits 5m (longer than 30s)',
  '0 jobs are ready (fewer than 10) and 0 % of the slots are busy (less than 30 %) while the oldest job waits 0ms (less than 10s) and ' +
    '0.27/s are processed and 0/s arrive (more than 2 x)',
  ...Array.from(
    { length: 3 },
    () =>
      '0 jobs are ready (fewer than 10) and 0 % of the slots are busy (less than 30 %) while the oldest job waits 0ms (less than 10s)',
  ),
]

describe('any load', () => {
  const anyLoad = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 4, maxLength: 12 })
  const anyScaling: fc.Arbitrary<ScalingOptions> = fc.record({
    min: fc.integer({ min: 1, max: 3 }),
    max: fc.integer({ min: 3, max: 12 }),
    cooldown: fc.constantFrom('30s' as const, '90s' as const),
  })
  const anyService = fc.constantFrom(1, 5, 60)

  test('P2 whatever arrives: within the limits, and no step back inside the cooldown', () => {
    fc.assert(
      fc.property(anyLoad, anyScaling, anyService, fc.boolean(), (load, options, serviceS, holds) => {
        const scaling = holds ? { ...options, maxWait: '20s' as const, up: { cooldown: '30s' as const } } : options
        const arrivals = (second: number) => load[Math.floor(second / 60) % load.length]!
        const { steps } = runWorld(alone(900, { arrivals, serviceS, scaling }, { from: scaling.min! }))
        for (const [index, step] of steps.entries()) {
          expect(step.to).toBeGreaterThanOrEqual(scaling.min!)
          expect(step.to).toBeLessThanOrEqual(scaling.max!)
          expect(sinceLast(steps, index)).toBeGreaterThanOrEqual(scaling.cooldown === '30s' || holds ? 30 : 90)
          if (step.to < step.from)
            expect(sinceLast(steps, index)).toBeGreaterThanOrEqual(scaling.cooldown === '30s' ? 30 : 90)
        }
      }),
      { numRuns: 40 },
    )
  })
})

function sinceLast(steps: readonly WorldStep[], index: number): number {
  const before = steps[index - 1]
  return before === undefined ? Infinity : steps[index]!.second - before.second
}
