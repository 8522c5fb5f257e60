// A backend may leave out a test only by its exact title and with a reason, so that no gap is silent.

export interface Skip {
  readonly title: string
  readonly reason: string
}

/** The reason to skip each of these titles. Throws when a skip has no reason or names no test. */
export function skipReasons(titles: readonly string[], skips: readonly Skip[]): ReadonlyMap<string, string> {
  const twice = titles.find((title, index) => titles.indexOf(title) !== index)
  if (twice !== undefined) throw new Error(`two tests are called "${twice}"`)
  const reasons = new Map<string, string>()
  for (const { title, reason } of skips) {
    if (reason.trim() === '') throw new Error(`the skip of "${title}" has no reason`)
    if (!titles.includes(title)) throw new Error(`a skip names "${title}", but there is no such test`)
    reasons.set(title, reason)
  }
  return reasons
}
