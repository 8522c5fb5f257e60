// The few statistics a benchmark needs. Medians, because one slow run says more about the machine.

export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly runs: number
}

export function summarise(values: readonly number[]): Summary {
  const sorted = ascending(values)
  return { median: median(sorted), min: sorted[0]!, max: sorted.at(-1)!, runs: sorted.length }
}

/** The middle value; of an even number, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values)
  const upper = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[upper]! : (sorted[upper - 1]! + sorted[upper]!) / 2
}

/** Nearest rank: the smallest value that at least `percent` of all values do not exceed. Always a measured one. */
export function percentile(values: readonly number[], percent: number): number {
  if (percent <= 0 || percent > 100) throw new RangeError(`a percentile lies above 0 and up to 100, not at ${percent}`)
  const sorted = ascending(values)
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1]!
}

function ascending(values: readonly number[]): readonly number[] {
  if (values.length === 0) throw new RangeError('no values to summarise')
  return [...values].sort((a, b) => a - b)
}
