// What the hybrid promises otherwise; docs/backend-contract.md §10 says why.
import type { Skip } from '../conformance/skips.ts'

export const HYBRID_SKIPS: readonly Skip[] = [
  {
    title: 'J4 the lower number starts first: by exact number, or by lane where the backend has lanes',
    reason:
      'the relay brings the jobs of a lane by exact priority; only those straight from a producer are in order of entry',
  },
]

const IN_REDIS = 'what was minted by its insert is in Redis already, and goes before what the relay brings later'

/** Under load: jobs minted by their insert, as producers do while a lane has room. */
export const HYBRID_FAST_SKIPS: readonly Skip[] = [
  ...HYBRID_SKIPS,
  { title: 'J4 a returned job keeps its place before its equals', reason: IN_REDIS },
  { title: 'J4 a delayed job takes its place in the order when its time has come', reason: IN_REDIS },
  { title: 'J4 a job that is returned with a claim is there for that claim', reason: IN_REDIS },
  {
    title: 'J3 a job that was claimed before the pause can be returned to its place without an attempt',
    reason: IN_REDIS,
  },
  {
    title: 'D9 a replaced job keeps its place when its priority stays, and goes to the end when it changes',
    reason: IN_REDIS,
  },
  {
    title: 'a guard on the status that does not hold is stale and leaves no trace',
    reason: 'a request to cancel is taken by a dispatched job too: its token may be in the hands of a worker',
  },
]
