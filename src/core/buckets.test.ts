// Histograms as values: sums, differences and quantiles.
import { describe, expect, test } from 'vitest'
import { addBuckets, quantileOf, subtractBuckets, totalOf } from './buckets.ts'

const bounds = [1, 2, 5]

describe('buckets', () => {
  test('O1 buckets are summed and subtracted whatever the length in which they are kept', () => {
    const a = { counts: [1, 2], sumSeconds: 3 }
    const b = { counts: [0, 1, 4], sumSeconds: 9 }
    const sum = addBuckets(a, b)
    expect(sum).toEqual({ counts: [1, 3, 4], sumSeconds: 12 })
    expect(subtractBuckets(sum, a)).toEqual({ counts: [0, 1, 4], sumSeconds: 9 })
    expect(totalOf(sum)).toBe(8)
  })

  test('O1 a quantile lies within its bucket, above the last bound it is that bound, and of nothing there is none', () => {
    expect(quantileOf({ counts: [10, 0, 0, 0], sumSeconds: 5 }, bounds, 0.5)).toBe(0.5)
    expect(quantileOf({ counts: [1, 1, 2], sumSeconds: 5 }, bounds, 0.75)).toBe(3.5)
    expect(quantileOf({ counts: [0, 0, 0, 3], sumSeconds: 30 }, bounds, 0.99)).toBe(5)
    expect(quantileOf({ counts: [], sumSeconds: 0 }, bounds, 0.5)).toBeNull()
  })
})
