// Waiting for something that another process does, at most a while.

export interface UntilOptions {
  /** Default 10 s. */
  readonly withinMs?: number
  /** Default 10. */
  readonly pollMs?: number
}

/** A look that fails counts as "not yet"; when the time is over its error says why. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { withinMs = 10_000, pollMs = 10 }: UntilOptions = {},
): Promise<void> {
  const deadlineMs = performance.now() + withinMs
  for (;;) {
    let cause: unknown
    try {
      if (await holds()) return
    } catch (error) {
      cause = error
    }
    if (performance.now() > deadlineMs) throw new Error(`waited ${withinMs} ms in vain for ${what}`, { cause })
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
