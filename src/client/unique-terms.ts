// How long a unique key is held and what a second job with it does: the same words in `defineJob` and
// in the options of one enqueue.
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS } from '../core/limits.ts'
import { invalidOption } from '../core/names.ts'
import type { OnDuplicate, UniqueHold, UniqueMode } from '../core/unique.ts'

export interface UniqueTerms {
  /** Default `until-finished`; with a `window` alone: `for-a-time`. */
  readonly mode?: UniqueMode
  /** Of a for-a-time hold, from the enqueue. Default 1 hour. */
  readonly window?: Duration
  /** Default `keep`. */
  readonly onDuplicate?: OnDuplicate
}

const MODES: readonly string[] = ['until-started', 'until-finished', 'for-a-time'] satisfies UniqueMode[]
const ON_DUPLICATE: readonly string[] = ['keep', 'replace', 'debounce'] satisfies OnDuplicate[]

export type CheckedTerms = Omit<UniqueHold, 'key'>

export function checkUniqueTerms(terms: UniqueTerms, fallback?: CheckedTerms): CheckedTerms {
  const { window } = terms
  const mode = terms.mode ?? (window === undefined ? (fallback?.mode ?? 'until-finished') : 'for-a-time')
  if (!MODES.includes(mode)) throw invalidOption('unique.mode', mode, MODES.join(', '))
  if (window !== undefined && mode !== 'for-a-time') {
    throw invalidOption('unique.window', window, `left out with the mode ${mode}: only for-a-time has a window`)
  }
  const onDuplicate = terms.onDuplicate ?? fallback?.onDuplicate ?? 'keep'
  if (!ON_DUPLICATE.includes(onDuplicate))
    throw invalidOption('unique.onDuplicate', onDuplicate, ON_DUPLICATE.join(', '))
  const windowMs = parseDuration(window ?? fallback?.windowMs ?? DEFAULTS.dedupWindowMs, 'unique.window', { minMs: 1 })
  return { mode, windowMs, onDuplicate }
}
