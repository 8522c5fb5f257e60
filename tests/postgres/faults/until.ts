// Conditions with a deadline, in place of sleeps.

export interface UntilOptions {
  /** Default 20 s: what takes longer on a busy machine is broken. */
  readonly limitMs?: number
  /** When this is false there is nothing left to wait for. */
  readonly goesOn?: () => boolean
}

const LIMIT_MS = 20_000
const POLL_MS = 20

export async function until(
  isDone: () => boolean | Promise<boolean>,
  what: string,
  { limitMs = LIMIT_MS, goesOn = () => true }: UntilOptions = {},
): Promise<void> {
  const deadlineMs = performance.now() + limitMs
  while (!(await isDone())) {
    if (!goesOn()) throw new Error(`waited for ${what} in vain`)
    if (performance.now() > deadlineMs) throw new Error(`waited ${limitMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
