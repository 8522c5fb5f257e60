// Silences: for a time nobody is told of new alerts of a rule, of a queue, or of one thing. They are recorded all the same,
// and told if they still fire when the silence ends.

export interface Silence {
  readonly id: string
  /** A rule, or the key of one alert; null: all. */
  readonly match: string | null
  /** Of this queue only. */
  readonly queue: string | null
  /** Null: as long as the configuration says so. */
  readonly untilMs: number | null
  readonly reason: string
  readonly by: string
  readonly createdAtMs: number
}

interface Silenced {
  readonly key: string
  readonly rule: string
  readonly queue: string | null
}

/** The one that lasts longest, so that nothing is told between two of them. */
export function silenceOf(silences: readonly Silence[], alert: Silenced, nowMs: number): Silence | null {
  const own = silences.filter((silence) => isSilencing(silence, alert, nowMs))
  return own.sort((a, b) => (b.untilMs ?? Infinity) - (a.untilMs ?? Infinity))[0] ?? null
}

function isSilencing({ match, queue, untilMs }: Silence, alert: Silenced, nowMs: number): boolean {
  if (untilMs !== null && untilMs <= nowMs) return false
  if (queue !== null && queue !== alert.queue) return false
  return match === null || match === alert.rule || match === alert.key
}
