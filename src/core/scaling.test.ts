// The decision for one queue: each number of the specification at its edge, the limits, the cooldown, and what a
// function of the user may do. Traces over time are in tests/supervisor.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SCALING } from './limits.ts'
import { scalingLimits } from './scaling-limits.ts'
import type { ScalingOptions } from './scaling-limits.ts'
import { decideScale, sentenceOf } from './scaling.ts'
import type { ScaleContext, ScaleMetrics, ScaleStep } from './scaling.ts'

const NOW_MS = 1_000_000_000

/** Neither up nor down by any rule. */
const STEADY: ScaleMetrics = {
  atMs: NOW_MS,
  size: 50,
  waitMs: 15_000,
  running: 6,
  busyOthers: 0,
  arrivalPerS: 10,
  processingPerS: 10,
  serviceMs: 600,
  utilisation: 0.6,
  concurrency: 10,
  workers: 5,
  draining: 0,
  paused: false,
}

function ask(
  metrics: Partial<ScaleMetrics> | null,
  options: ScalingOptions = {},
  context: Partial<ScaleContext> = {},
): ReturnType<typeof decideScale> {
  return decideScale({
    queue: 'mail',
    from: 5,
    metrics: metrics === null ? null : { ...STEADY, ...metrics },
    limits: scalingLimits(options),
    history: [],
    nowMs: NOW_MS,
    ...context,
  })
}

describe('thresholds', () => {
  test.each<[string, Partial<ScaleMetrics>, number]>([
    ['nothing', {}, 5],
    ['size at the edge', { size: 100 }, 5],
    ['size', { size: 101 }, 7],
    ['arrival at the edge', { arrivalPerS: 15 }, 5],
    ['arrival', { arrivalPerS: 15.1 }, 7],
    ['one job in an idle queue', { arrivalPerS: 0.2, processingPerS: 0, size: 12 }, 5],
    ['utilisation at the edge', { utilisation: 0.85 }, 5],
    ['utilisation', { utilisation: 0.86 }, 7],
    ['wait at the edge', { waitMs: 30_000 }, 5],
    ['wait', { waitMs: 30_001 }, 7],
    ['down: size at the edge', { size: 10 }, 5],
    ['down: size', { size: 9 }, 4],
    ['down: quiet', { utilisation: 0.29, waitMs: 9_999 }, 4],
    ['down: quiet but waiting', { utilisation: 0.29, waitMs: 10_000 }, 5],
    ['down: not quiet', { utilisation: 0.3, waitMs: 9_999 }, 5],
    ['down: faster than what arrives', { size: 4, arrivalPerS: 4 }, 4],
    ['up wins over down', { size: 9, waitMs: 40_000 }, 7],
    ['down only if the rest stays at 85 % or less', { size: 9, utilisation: 0.68 }, 4],
    ['not if it would be busier', { size: 9, utilisation: 0.69 }, 5],
  ])('P2 the defaults of the specification: %s', (_, metrics, to) => {
    expect(ask(metrics).to).toBe(to)
  })

  test('P2 all reasons that match are told, with their numbers', () => {
    const decision = ask({ size: 240, arrivalPerS: 12, processingPerS: 5, utilisation: 0.92, waitMs: 45_000 })
    expect(sentenceOf(decision)).toBe(
      'up from 5 to 7 because 240 jobs are ready (more than 100) and 12/s arrive and 5/s are processed (more than 1.5 x) and ' +
        '92 % of the slots are busy (more than 85 %) and the oldest job waits 45s (longer than 30s)',
    )
    expect(sentenceOf(ask({ size: 3, arrivalPerS: 1, utilisation: 0.1, waitMs: 200 }))).toBe(
      'down from 5 to 4 because 3 jobs are ready (fewer than 10) and 10 % of the slots are busy (less than 30 %) while the ' +
        'oldest job waits 200ms (less than 10s) and 10/s are processed and 1/s arrive (more than 2 x)',
    )
  })

  test.each<[string, ScalingOptions, Partial<ScaleMetrics>, number]>([
    ['up.size', { up: { size: 40 } }, {}, 7],
    ['up.arrivalRatio', { up: { arrivalRatio: 0.9 } }, {}, 7],
    ['up.utilisation', { up: { utilisation: 0.5 } }, {}, 7],
    ['up.wait', { up: { wait: '10s' } }, {}, 7],
    ['up.step', { up: { step: 5 } }, { size: 101 }, 10],
    ['arrivalMin', { arrivalMin: 20 }, { arrivalPerS: 18 }, 5],
    ['down.size', { down: { size: 51 } }, {}, 4],
    ['down.utilisation', { down: { utilisation: 0.7, wait: '20s' } }, {}, 4],
    ['down.processingRatio', { down: { processingRatio: 0.5, calmSize: 51 } }, {}, 4],
    ['down.step', { down: { step: 3 } }, { size: 9, utilisation: 0.2 }, 2],
    ['busyMax', { busyMax: 0.7 }, { size: 9 }, 5],
    ['min', { min: 5 }, { size: 0 }, 5],
    ['max', { max: 6 }, { size: 500 }, 6],
  ])('P2 every number can be changed: %s', (_, options, metrics, to) => {
    expect(ask(metrics, options).to).toBe(to)
  })

  test('P2 what waits in a paused queue asks for nobody', () => {
    const decision = ask({ paused: true, size: 5_000, waitMs: 3_600_000, utilisation: 0, arrivalPerS: 50 })
    expect(decision).toMatchObject({ action: 'down', to: 4 })
    expect(decision.reasons[0]).toBe('the queue is paused')
  })
})

describe('limits and cooldown', () => {
  const up: ScaleStep = { action: 'up', atMs: NOW_MS - 299_999 }

  test('P2 within the cooldown nothing changes, and the reason says what was wanted', () => {
    const decision = ask({ size: 500 }, {}, { history: [up] })
    expect(sentenceOf(decision)).toBe(
      'stays at 5 because up to 7 is wanted: 500 jobs are ready (more than 100) and the last change was 4m 59s ago, ' +
        'which is within the cooldown of 5m',
    )
    expect(ask({ size: 500 }, {}, { history: [up], nowMs: NOW_MS + 1 }).to).toBe(7)
    expect(ask({ size: 1 }, {}, { history: [up] }).to).toBe(5)
    expect(ask({ size: 500 }, { cooldown: '1m' }, { history: [up] }).to).toBe(7)
    expect(ask({ size: 1 }, { cooldown: '1m', down: { cooldown: '10m' } }, { history: [up] }).to).toBe(5)
  })

  test('P2 a step that lies in the future holds for one cooldown at most', () => {
    const soon = [{ action: 'up', atMs: NOW_MS + 60_000 }] as const
    expect(ask({ size: 500 }, {}, { history: soon }).action).toBe('hold')
    const farOff = [{ action: 'up', atMs: NOW_MS + 86_400_000 }] as const
    expect(ask({ size: 500 }, {}, { history: farOff }).action).toBe('up')
  })

  test('P2 the maximum counts those that still drain', () => {
    const decision = ask({ size: 500, draining: 3 }, { max: 9 }, { from: 5 })
    expect(sentenceOf(decision)).toMatch(/^up from 5 to 6 because .* and the maximum is 9 and 3 still drain$/)
    expect(ask({ size: 500, draining: 9 }, { max: 9 }, { from: 5 }).to).toBe(5)
  })

  test('P2 limits that were changed are followed: up at once, down when the cooldown allows it', () => {
    expect(ask(null, { min: 8 }, { history: [up] })).toMatchObject({ action: 'up', to: 8 })
    expect(ask({}, { max: 3 }, { history: [up] })).toMatchObject({ action: 'hold', to: 5 })
    expect(ask({}, { max: 3 })).toMatchObject({ action: 'down', to: 3, reasons: ['the maximum is 3'] })
  })

  test.each<[string, Partial<ScaleMetrics> | null, ScalingOptions]>([
    ['no metrics', null, {}],
    ['old metrics', { atMs: NOW_MS - SCALING.staleMs - 1, size: 999 }, {}],
    ['metrics from the future', { atMs: NOW_MS + SCALING.staleMs + 1, size: 999 }, {}],
    ['metrics that are no numbers', { size: Number.NaN }, {}],
    ['workers without slots', { concurrency: 0, size: 999 }, {}],
    ['switched off', { size: 999 }, { enabled: false }],
  ])('P2 never scales on nothing: %s', (_, metrics, options) => {
    const decision = ask(metrics, options)
    expect(decision).toMatchObject({ action: 'hold', from: 5, to: 5 })
    expect(decision.reasons).toHaveLength(1)
  })

  test.each<[unknown, RegExp]>([
    [{ minimum: 1 }, /autoscale has no option "minimum"/],
    [{ min: 0 }, /autoscale.min is 0/],
    [{ min: 4, max: 3 }, /autoscale.max is 3/],
    [{ up: { utilisation: 85 } }, /autoscale.up.utilisation is 85/],
    [{ up: { sizes: 1 } }, /autoscale.up has no option "sizes"/],
    [{ cooldown: 'soon' }, /autoscale.cooldown is "soon"/],
    [{ maxWait: 0 }, /autoscale.maxWait is 0/],
    [{ decide: 'yes' }, /autoscale.decide is "yes"/],
    [{ busyMax: 0 }, /autoscale.busyMax is 0/],
    [{ enabled: 1 }, /autoscale.enabled is 1/],
  ])('P2 refuses %j', (options, message) => {
    expect(() => scalingLimits(options as ScalingOptions)).toThrow(message)
  })
})

describe('holding a wait', () => {
  const slo: ScalingOptions = { maxWait: '10s', max: 50 }

  test('P2 workers by the law of Little: arrival x run time, and what waits within what is left of its wait', () => {
    // 30/s x 2 s = 60 slots, at 85 % of 10 slots each: 7.06, so 8.
    expect(ask({ size: 0, waitMs: 0, arrivalPerS: 30, serviceMs: 2_000, running: 20 }, slo, { from: 5 }).to).toBe(8)
    // And 100 ready jobs within 10 s - 5 s: 100 x 2 / 5 = 40 slots more.
    expect(ask({ size: 100, waitMs: 5_000, arrivalPerS: 30, serviceMs: 2_000 }, slo, { from: 8 }).to).toBe(12)
  })

  test('P2 goes up at once to what is needed, at most twice as many at a time', () => {
    expect(ask({ size: 5_000 }, slo, { from: 5 }).to).toBe(10)
    expect(ask({ size: 5_000 }, slo, { from: 1 }).to).toBe(3)
  })

  test('P2 running jobs count: long jobs are not scaled away', () => {
    const busy = { size: 0, waitMs: 0, arrivalPerS: 0, serviceMs: 600_000 }
    expect(ask({ ...busy, running: 40 }, slo)).toMatchObject({ action: 'hold' })
    expect(ask({ ...busy, running: 5 }, slo)).toMatchObject({ action: 'down', to: 4 })
    expect(ask({ ...busy, running: 5, busyOthers: 35 }, slo)).toMatchObject({ action: 'hold' })
  })

  test('P2 a step down needs some slack, so that it is not taken back', () => {
    // 5 workers are 42.5 busy slots; 4 are 34. With a fifth more load, 28.3 are the most that 4 can take.
    const calm = { size: 0, waitMs: 0, arrivalPerS: 10, running: 0 }
    expect(ask({ ...calm, serviceMs: 2_850 }, slo).to).toBe(5)
    expect(ask({ ...calm, serviceMs: 2_800 }, slo).to).toBe(4)
  })

  test('P2 as long as no job has ended, busy workers and waiting jobs ask for a step', () => {
    expect(ask({ serviceMs: null, utilisation: 1 }, slo).to).toBe(7)
    expect(ask({ serviceMs: null, utilisation: 0.5 }, slo).to).toBe(5)
    expect(ask({ serviceMs: null, size: 0, running: 0 }, slo).to).toBe(4)
  })

  test('P2 ups follow each other after 15 seconds, downs after 5 minutes', () => {
    const before = (ms: number) => ({ history: [{ action: 'up', atMs: NOW_MS - ms }] as const })
    expect(ask({ size: 5_000 }, slo, before(14_999)).action).toBe('hold')
    expect(ask({ size: 5_000 }, slo, before(15_000)).action).toBe('up')
    expect(ask({ size: 0, running: 0, arrivalPerS: 0 }, slo, before(299_999)).action).toBe('hold')
  })
})

describe('a function of the user', () => {
  test('P2 may replace the rules; its answer keeps to the limits and to the cooldown', () => {
    expect(ask({}, { decide: () => 9 })).toMatchObject({ action: 'up', to: 9, reasons: ['decide() says so'] })
    expect(ask({}, { decide: () => 99 })).toMatchObject({ to: 15 })
    expect(ask({}, { decide: () => -99 })).toMatchObject({ to: 1 })
    const history = [{ action: 'up', atMs: NOW_MS - 1_000 }] as const
    expect(ask({}, { decide: () => 9 }, { history })).toMatchObject({ action: 'hold' })
    const now = { to: 9, reasons: ['black friday'], ignoreCooldown: true }
    expect(ask({}, { decide: () => now }, { history })).toMatchObject({ to: 9, reasons: ['black friday'] })
  })

  test('P2 may wrap the rules', () => {
    const decide: ScalingOptions['decide'] = ({ metrics }, next) => {
      const usual = next()
      return metrics !== null && metrics.arrivalPerS > 100 ? { to: usual.to + 3, reasons: usual.reasons } : usual
    }
    expect(ask({ size: 200 }, { decide }).to).toBe(7)
    expect(ask({ size: 200, arrivalPerS: 120 }, { decide }).to).toBe(10)
  })

  test.each<[string, () => unknown]>([
    ['throws', () => fail()],
    ['answers nothing', () => undefined],
    ['answers no number', () => Number.NaN],
    ['answers a promise', () => Promise.resolve(3)],
    ['answers null', () => null],
  ])('P2 holds when it %s, and says so', (_, decide) => {
    const decision = ask({ size: 999 }, { decide: decide as () => number })
    expect(decision).toMatchObject({ action: 'hold', to: 5, reasons: ['the function that decides failed'] })
    expect(decision.error).toBeInstanceOf(Error)
  })
})

describe('for any load', () => {
  const count = fc.integer({ min: 0, max: 2_000 })
  const rate = fc.double({ min: 0, max: 1_000, noNaN: true })
  const anyMetrics: fc.Arbitrary<ScaleMetrics> = fc.record({
    atMs: fc.integer({ min: NOW_MS - 40_000, max: NOW_MS }),
    size: count,
    waitMs: fc.integer({ min: 0, max: 120_000 }),
    running: count,
    busyOthers: count,
    arrivalPerS: rate,
    processingPerS: rate,
    serviceMs: fc.double({ min: 0, max: 100_000, noNaN: true }),
    utilisation: fc.double({ min: 0, max: 1, noNaN: true }),
    concurrency: fc.integer({ min: 1, max: 100 }),
    workers: count,
    draining: fc.integer({ min: 0, max: 20 }),
    paused: fc.boolean(),
  })
  const anyLimits: fc.Arbitrary<ScalingOptions> = fc
    .record({ min: fc.integer({ min: 1, max: 20 }), more: fc.integer({ min: 0, max: 30 }), slo: fc.boolean() })
    .map(({ min, more, slo }) => ({ min, max: min + more, ...(slo && { maxWait: '20s' as const }) }))
  const anyHistory = fc.array(
    fc.record({
      action: fc.constantFrom<'up' | 'down'>('up', 'down'),
      atMs: fc.integer({ min: NOW_MS - 400_000, max: NOW_MS }),
    }),
    { maxLength: 3 },
  )
  const sorted = (history: readonly ScaleStep[]) => [...history].sort((one, other) => one.atMs - other.atMs)

  test('P2 never outside the limits, and no step within the cooldown of the one before', () => {
    fc.assert(
      fc.property(
        anyMetrics,
        anyLimits,
        anyHistory,
        fc.integer({ min: 0, max: 50 }),
        (metrics, options, steps, over) => {
          const limits = scalingLimits(options)
          const from = Math.min(limits.min + over, limits.max)
          const history = sorted(steps)
          const { action, to, reasons } = decideScale({ queue: 'q', from, metrics, limits, history, nowMs: NOW_MS })
          expect(to).toBeGreaterThanOrEqual(limits.min)
          expect(to).toBeLessThanOrEqual(limits.max)
          expect(reasons.length).toBeGreaterThan(0)
          const sinceMs = NOW_MS - (history.at(-1)?.atMs ?? -Infinity)
          if (action !== 'hold') expect(sinceMs).toBeGreaterThanOrEqual(limits[action].cooldownMs)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('P2 more load never yields fewer workers', () => {
    const more = fc.record({ size: count, waitMs: count, running: count, busyOthers: count, arrivalPerS: rate })
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(anyMetrics, more, share, anyLimits, anyHistory, (metrics, add, less, options, steps) => {
        const loaded: ScaleMetrics = {
          ...metrics,
          size: metrics.size + add.size,
          waitMs: metrics.waitMs + add.waitMs,
          running: metrics.running + add.running,
          busyOthers: metrics.busyOthers + add.busyOthers,
          arrivalPerS: metrics.arrivalPerS + add.arrivalPerS,
          processingPerS: metrics.processingPerS * less,
          utilisation: metrics.utilisation + (1 - metrics.utilisation) * less,
        }
        const limits = scalingLimits(options)
        const context = { queue: 'q', from: limits.min + 3, limits, history: sorted(steps), nowMs: NOW_MS }
        const from = Math.min(context.from, limits.max)
        const calm = decideScale({ ...context, from, metrics }).to
        expect(decideScale({ ...context, from, metrics: loaded }).to).toBeGreaterThanOrEqual(calm)
      }),
      { numRuns: 1_000 },
    )
  })
})

function fail(): never {
  throw new Error('no')
}
