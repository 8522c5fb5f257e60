// Numbers that only some scenarios have, with the words that stand for them in the table and in the document.

const WORDS = {
  slotsFreeSeconds: (value) => `slots free ${value.toFixed(1)} s after the last such start`,
  lateResults: (value) => `${value} results came after the next run had begun`,
  early: (value) => `${value} early`,
  late: (value) => `${value} late`,
  latestSeconds: (value) => `the latest ${value.toFixed(1)} s after its time`,
  rssGrowthMiB: (value) => `memory of a worker at most ${Math.round(value)} MiB more than before`,
  windowMost: (value) => `at most ${value} tokens in Redis`,
  connections: (value) => `${value} connections`,
  churn: (value) => `${value.toFixed(1)} times as many asked for to come back`,
  longestWaitSeconds: (value) => `longest wait for a start ${value.toFixed(2)} s`,
  members: (value) => `a batch of ${value}`,
  leadersStruck: (value) => `${value} leaders struck at a tick`,
} as const satisfies Readonly<Record<string, (value: number) => string>>

export type Figures = { readonly [Name in keyof typeof WORDS]?: number }

/** What a scenario alone can say of its cell. */
export interface Findings {
  readonly figures: Figures
  /** What was not as it should be. */
  readonly broken: readonly string[]
}

export function wordsOf(figures: Figures): string {
  const names = Object.keys(WORDS) as (keyof Figures)[] // its own keys
  return names
    .flatMap((name) => {
      const value = figures[name]
      return value === undefined ? [] : [WORDS[name](value)]
    })
    .join(', ')
}
