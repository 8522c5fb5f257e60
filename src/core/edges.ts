// The transition table: the only place that says which change of status is legal, under which guard,
// and who may ask for it. Types, checks, docs/state-machine.md and the SQL constraints derive from it.
import type { AttemptStatus, JobStatus } from './job.ts'

export type Actor = 'client' | 'worker' | 'maintenance' | 'store' | 'relay'

export interface Edge {
  readonly from: readonly JobStatus[]
  /** Where the job may land. A move towards `queued` passes the gates and may end up waiting. */
  readonly to: readonly JobStatus[]
  readonly by: readonly Actor[]
  /** Must the change name the lease of the run? */
  readonly lease: boolean
  /** Does it end a run that counts as an attempt? */
  readonly counts: boolean
  /** The audit row it writes, if any. */
  readonly audit: Exclude<AttemptStatus, 'attempting'> | null
  readonly says: string
}

const WAITING = ['scheduled', 'queued', 'blocked', 'dispatched'] as const
const TOWARDS_READY = ['queued', 'blocked', 'scheduled'] as const

export const EDGES = {
  enqueue: {
    from: [],
    to: TOWARDS_READY,
    by: ['client'],
    lease: false,
    counts: false,
    audit: null,
    says: 'the id is new and its unique key is free',
  },
  replace: {
    from: ['scheduled', 'queued', 'blocked'],
    to: TOWARDS_READY,
    by: ['client'],
    lease: false,
    counts: false,
    audit: null,
    says: 'a newer request with its unique key takes its place before it starts',
  },
  promote: {
    from: ['scheduled'],
    to: TOWARDS_READY,
    by: ['store'],
    lease: false,
    counts: false,
    audit: null,
    says: 'its time has come',
  },
  admit: {
    from: ['blocked'],
    to: TOWARDS_READY,
    by: ['store'],
    lease: false,
    counts: false,
    audit: null,
    says: 'the gate it waited for has opened',
  },
  withhold: {
    from: ['queued'],
    to: ['blocked'],
    by: ['store'],
    lease: false,
    counts: false,
    audit: null,
    says: 'a limit was set and there is no slot for it',
  },
  claim: {
    from: ['queued', 'dispatched'],
    to: ['running'],
    by: ['store'],
    lease: false,
    counts: false,
    audit: null,
    says: 'a live worker asked for work; mints the lease',
  },
  dispatch: {
    from: ['queued'],
    to: ['dispatched'],
    by: ['relay'],
    lease: false,
    counts: false,
    audit: null,
    says: 'hybrid only: its token goes to Redis',
  },
  undispatch: {
    from: ['dispatched'],
    to: ['queued'],
    by: ['relay'],
    lease: true,
    counts: false,
    audit: null,
    says: 'hybrid only: its token is known to be lost',
  },
  report: {
    from: ['running'],
    to: ['running'],
    by: ['worker'],
    lease: true,
    counts: false,
    audit: null,
    says: 'progress and log lines of the current run',
  },
  complete: {
    from: ['running'],
    to: ['completed'],
    by: ['worker'],
    lease: true,
    counts: true,
    audit: 'success',
    says: 'the handler returned',
  },
  retry: {
    from: ['running'],
    to: TOWARDS_READY,
    by: ['worker'],
    lease: true,
    counts: true,
    audit: 'retry',
    says: 'the run failed and attempts are left',
  },
  fail: {
    from: ['running'],
    to: ['failed'],
    by: ['worker'],
    lease: true,
    counts: true,
    audit: 'failed',
    says: 'the run failed for good',
  },
  snooze: {
    from: ['running'],
    to: TOWARDS_READY,
    by: ['worker'],
    lease: true,
    counts: false,
    audit: 'released',
    says: 'the handler asked to be run later',
  },
  release: {
    from: ['running'],
    to: TOWARDS_READY,
    by: ['worker'],
    lease: true,
    counts: false,
    audit: 'released',
    says: 'a started run is given back: the handler asked, or the worker stops',
  },
  return: {
    from: ['running'],
    to: ['queued'],
    by: ['worker'],
    lease: true,
    counts: false,
    audit: null,
    says: 'claimed but never started: goes back to its place in the order',
  },
  defer: {
    from: ['running'],
    to: ['scheduled'],
    by: ['worker'],
    lease: true,
    counts: false,
    audit: null,
    says: 'claimed but never started: its rate limit has no token',
  },
  cancel: {
    from: WAITING,
    to: ['cancelled'],
    by: ['client', 'maintenance'],
    lease: false,
    counts: false,
    audit: 'cancelled',
    says: 'a waiting job never starts',
  },
  requestCancel: {
    from: ['running'],
    to: ['running'],
    by: ['client', 'maintenance'],
    lease: false,
    counts: false,
    audit: null,
    says: 'the worker is told to abort; the flag decides how the run ends',
  },
  cancelRunning: {
    from: ['running'],
    to: ['cancelled'],
    by: ['worker', 'maintenance'],
    lease: true,
    counts: true,
    audit: 'cancelled',
    says: 'a run ends and cancellation was asked for, by an operator or by the handler',
  },
  cancelUnstarted: {
    from: ['running'],
    to: ['cancelled'],
    by: ['worker'],
    lease: true,
    counts: false,
    audit: 'cancelled',
    says: 'claimed but never started, and cancellation was asked for',
  },
  expire: {
    from: ['running'],
    to: TOWARDS_READY,
    by: ['maintenance'],
    lease: true,
    counts: true,
    audit: 'expired',
    says: 'its worker is dead or its visibility lapsed, and it may run again',
  },
  expireForGood: {
    from: ['running'],
    to: ['failed'],
    by: ['maintenance'],
    lease: true,
    counts: true,
    audit: 'expired',
    says: 'its worker is dead and no attempt is left, or it is poison',
  },
  failOrphan: {
    from: ['blocked'],
    to: ['failed'],
    by: ['maintenance'],
    lease: false,
    counts: false,
    audit: 'failed',
    says: 'still orphaned by the parent that did not complete; the policy is fail',
  },
  cancelOrphan: {
    from: ['blocked'],
    to: ['cancelled'],
    by: ['maintenance'],
    lease: false,
    counts: false,
    audit: 'cancelled',
    says: 'still orphaned by the parent that did not complete; the policy is cancel',
  },
  replay: {
    from: ['failed'],
    to: TOWARDS_READY,
    by: ['client'],
    lease: false,
    counts: false,
    audit: 'replayed',
    says: 'an operator wants it run again: same job, fresh attempts; its unique key must be free',
  },
  markReplayed: {
    from: ['failed'],
    to: ['failed'],
    by: ['client'],
    lease: false,
    counts: false,
    audit: 'replayed',
    says: 'it was replayed as a new job: the link to that job',
  },
  remove: {
    from: [...WAITING, 'completed', 'failed', 'cancelled'],
    to: [],
    by: ['client', 'maintenance'],
    lease: false,
    counts: false,
    audit: null,
    says: 'the job and all that hangs on it are deleted; a running one is cancelled first',
  },
} as const satisfies Record<string, Edge>

export type EdgeName = keyof typeof EDGES

/** Is `from → to` by this edge in the table? Backends and the simulator assert it. */
export function isLegal(edge: EdgeName, from: JobStatus, to: JobStatus): boolean {
  const { from: froms, to: tos }: Edge = EDGES[edge]
  return froms.includes(from) && tos.includes(to)
}
