import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS } from './limits.ts'
import { checkRetryPolicy, customRetry, exponential, fixed, linear, retryDelayMs, type RetryPolicy } from './retry.ts'

const none = () => 0
const most = () => 0.999_999
const delays = (policy: RetryPolicy, random: () => number, count = 6) =>
  Array.from({ length: count }, (_, index) => retryDelayMs(policy, index + 1, random))

describe('D5 policies', () => {
  test('D5 exponential is the default shape: 1 s doubling up to 5 min, with +0-30 % jitter', () => {
    expect(delays(exponential(), none, 11)).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000,
    ])
    expect(delays(exponential(), most, 2)).toEqual([1_300, 2_600])
    expect(retryDelayMs(exponential(), 20, most)).toBe(390_000)
  })

  test('D5 linear grows by its step, fixed stays, both without jitter unless asked', () => {
    expect(delays(linear({ step: '2s', max: '5s' }), most, 4)).toEqual([2_000, 4_000, 5_000, 5_000])
    expect(delays(fixed(), most, 3)).toEqual([5_000, 5_000, 5_000])
    expect(retryDelayMs(fixed({ delay: '10s', jitter: 0.5 }), 1, () => 0.5)).toBe(12_500)
  })

  test('D5 a custom function decides, and null gives up', () => {
    const policy = customRetry((attempt, error) => (error === 'stop' ? null : attempt * 10), { attempts: 7 })
    expect(policy.attempts).toBe(7)
    expect(retryDelayMs(policy, 3, none)).toBe(30)
    expect(retryDelayMs(policy, 3, none, 'stop')).toBe('give-up')
  })

  test('D5 a custom function that breaks falls back to the default delay', () => {
    const broken = [
      () => {
        throw new Error('bug')
      },
      () => Number.NaN,
      () => -1,
      () => undefined as never,
      () => '5s' as never,
    ]
    for (const delayOf of broken) expect(retryDelayMs(customRetry(delayOf), 3, none)).toBe(4_000)
    expect(
      retryDelayMs(
        customRetry(() => Infinity),
        1,
        none,
      ),
    ).toBe(LIMITS.delayMaxMs)
    expect(
      retryDelayMs(
        customRetry(() => 0.4),
        1,
        none,
      ),
    ).toBe(0)
  })

  test('D5 a stored policy survives JSON', () => {
    const policy = exponential({ attempts: 5, base: '2s', max: '1h' })
    expect(JSON.parse(JSON.stringify(policy))).toEqual(policy)
  })
})

describe('constructors', () => {
  test.each([
    () => exponential({ attempts: 0 }),
    () => exponential({ attempts: 1_001 }),
    () => exponential({ factor: 0.5 }),
    () => exponential({ factor: Number.NaN }),
    () => exponential({ jitter: 1.1 }),
    () => exponential({ bases: '1s' } as never),
    () => linear({ jitter: -0.1 }),
    () => fixed({ attempts: 1.5 }),
    () => customRetry('no' as never),
  ])('refuse options out of range: %s', (make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  test('refuse a first delay longer than the longest', () => {
    expect(() => exponential({ base: '1h', max: '1m' })).toThrow('base is 3600000, but must be at most max (60000 ms)')
    expect(() => linear({ step: '1h', max: '1m' })).toThrow('step is 3600000, but must be at most max (60000 ms)')
  })

  test('let the one that is left out give way', () => {
    expect(exponential({ base: '1h' })).toMatchObject({ baseMs: 3_600_000, maxMs: 3_600_000 })
    expect(exponential({ max: 500 })).toMatchObject({ baseMs: 500, maxMs: 500 })
    expect(linear({ step: '1h' })).toMatchObject({ stepMs: 3_600_000, maxMs: 3_600_000 })
    expect(linear({ max: '1s' })).toMatchObject({ stepMs: 1_000, maxMs: 1_000 })
  })

  test('refuse what is no duration', () => {
    expect(() => fixed({ delay: '5 minutes' as never })).toThrow(/delay is "5 minutes"/)
  })
})

describe('a policy made by hand', () => {
  test('is taken when every field is there and in range', () => {
    const made = [exponential({ attempts: 2 }), linear(), fixed(), customRetry(() => 1)]
    for (const policy of made) expect(checkRetryPolicy({ ...policy })).toEqual(policy)
  })

  test.each([
    [null, 'retry is null'],
    ['fixed', 'retry is "fixed"'],
    [{ attempts: 3 }, 'made by exponential()'],
    [{ kind: 'toString' }, 'made by exponential()'],
    [{ kind: 'fixed' }, 'retry.delayMs is undefined'],
    [{ kind: 'fixed', delayMs: Number.NaN, jitter: 0 }, 'retry.delayMs is NaN'],
    [{ kind: 'fixed', delayMs: '5s', jitter: 0 }, 'retry.delayMs is "5s"'],
    [{ kind: 'fixed', delayMs: 5 }, 'retry.jitter is undefined'],
    [{ kind: 'fixed', delay: '5s' }, 'retry of kind fixed has no option "delay"'],
    [{ ...fixed(), attempts: 0 }, 'attempts is 0'],
    [{ ...linear(), stepMs: undefined }, 'retry.stepMs is undefined'],
    [{ ...exponential(), factor: 0 }, 'retry.factor is 0'],
    [{ ...exponential(), maxMs: Infinity }, 'retry.maxMs is Infinity'],
    [{ ...exponential(), baseMs: 300_001 }, 'at most retry.maxMs (300000 ms)'],
    [{ kind: 'custom' }, 'retry.delayOf is undefined'],
  ])('%j is refused', (policy, message) => {
    expect(() => checkRetryPolicy(policy)).toThrow(message)
    expect(() => checkRetryPolicy(policy)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})

test('every policy gives a whole number of ms within bounds, for any attempt and any luck', () => {
  const duration = fc.integer({ min: 0, max: LIMITS.delayMaxMs })
  const jitter = fc.double({ min: 0, max: 1, noNaN: true })
  const policy: fc.Arbitrary<RetryPolicy> = fc.oneof(
    fc
      .record({ base: duration, factor: fc.double({ min: 1, max: 100, noNaN: true }), max: duration, jitter })
      .map((options) => exponential({ ...options, base: Math.min(options.base, options.max) })),
    fc
      .record({ step: duration, max: duration, jitter })
      .map((options) => linear({ ...options, step: Math.min(options.step, options.max) })),
    fc.record({ delay: duration, jitter }).map((options) => fixed(options)),
    fc.oneof(fc.double(), fc.constant(undefined as never)).map((value) => customRetry(() => value)),
  )
  const luck = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
  fc.assert(
    fc.property(policy, fc.integer({ min: 1, max: 1_000_000 }), luck, (chosen, attempt, value) => {
      const delayMs = retryDelayMs(chosen, attempt, () => value)
      expect(Number.isSafeInteger(delayMs)).toBe(true)
      expect(delayMs).toBeGreaterThanOrEqual(0)
      expect(delayMs).toBeLessThanOrEqual(LIMITS.delayMaxMs)
    }),
  )
})
