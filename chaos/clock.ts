// The time of day for the books, the same in every process of a cell: also where shift-clock.ts has moved the clock.

export const AHEAD_VARIABLE = 'CHAOS_AHEAD_MS'

/** Left by shift-clock.ts. */
export interface Shifted {
  chaosTrueNowMs?: () => number
}

export function trueNowMs(): number {
  return ((globalThis as Shifted).chaosTrueNowMs ?? Date.now)() // set by shift-clock.ts or by nobody
}
