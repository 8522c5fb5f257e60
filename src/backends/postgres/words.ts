// The words that the tables keep as numbers, once for TypeScript; sql/10_time.sql lists them for SQL.
// A number is never given to another word.
import type { AttemptStatus, FinalStatus, ParentFailurePolicy, WaitReason } from '../../core/job.ts'
import type { OnDuplicate, UniqueMode } from '../../core/unique.ts'

export const AUDIT = {
  success: 1,
  retry: 2,
  failed: 3,
  cancelled: 4,
  expired: 5,
  released: 6,
  replayed: 7,
} as const satisfies Record<Exclude<AttemptStatus, 'attempting'>, number>

export const ENDED = { completed: 1, failed: 2, cancelled: 3 } as const satisfies Record<FinalStatus, number>

export const POLICY = { fail: 1, cancel: 2, continue: 3 } as const satisfies Record<ParentFailurePolicy, number>

export const UNIQUE_MODE = {
  'until-started': 1,
  'until-finished': 2,
  'for-a-time': 3,
} as const satisfies Record<UniqueMode, number>

export const ON_DUPLICATE = { keep: 1, replace: 2, debounce: 3 } as const satisfies Record<OnDuplicate, number>

/** Why a scheduled job waits, and at which gate a blocked one does. */
export const WAITS_FOR = { delay: 1, rate: 2, retry: 3, snooze: 4 } as const satisfies Partial<
  Record<WaitReason, number>
>
export const GATE = { parents: 1, group: 2, 'key-slot': 3, 'queue-slot': 4 } as const satisfies Partial<
  Record<WaitReason, number>
>

/** The word of a number that was read. */
export function wordOf<Word extends string>(words: Readonly<Record<Word, number>>, number: number): Word {
  for (const word in words) if (words[word] === number) return word
  throw new Error(`${number} stands for none of ${Object.keys(words).join(', ')}`)
}
