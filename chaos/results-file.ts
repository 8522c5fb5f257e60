// Where the results of a run go: never over those of another.
import { existsSync } from 'node:fs'
import { join } from 'node:path'

export interface ResultsAsked {
  /** Undefined: one by time. */
  readonly json: string | undefined
  readonly isResumed: boolean
}

/** Under `chaos/results`, ignored by git. A name by time, so that no run overwrites what an earlier one took an hour for. */
export function fileOf({ json, isResumed }: ResultsAsked, root: string, now: string): string {
  const file = json ?? join(root, 'chaos', 'results', `${now.slice(0, 19).replaceAll(':', '-')}.json`)
  if (isResumed || !existsSync(file)) return file
  throw new Error(`${file} has results already: go on with them by --resume, or name another file`)
}
