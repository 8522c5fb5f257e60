// What the hybrid promises otherwise; docs/backend-contract.md §10 says why.
import type { Skip } from '../conformance/skips.ts'

export const HYBRID_SKIPS: readonly Skip[] = [
  {
    title: 'J4 the lower number starts first: by exact number, or by lane where the backend has lanes',
    reason:
      'the relay brings the jobs of a lane by exact priority; only those straight from a producer are in order of entry',
  },
]
