// The named points at which a process may be crashed, in simulation or, where it is a real one, by a test. Each stands for a
// crash that the design thought through; a simulation that never crashes at one of them fails.

export const FAILPOINTS = [
  /** A producer dies before its insert was sent, or after it took effect and before anyone was told. */
  'enqueue.before-insert',
  'enqueue.after-insert',
  /** A worker dies with settlements decided and not sent, or with jobs claimed and not started. */
  'pump.before-call',
  'pump.after-claim',
  /** A handler has done its work and nobody knows. */
  'worker.handler-ended',
  /** A rate token was taken and the job not started. */
  'rate.after-take',
  /** A leader dies in the middle of its work. */
  'promoter.after-pass',
  'rescuer.before-declare',
  'rescuer.before-apply',
  'scheduler.before-fire',
  /** Hybrid. A producer dies with a lease minted and its token not pushed. */
  'hybrid.after-mint',
  'hybrid.before-push',
  /** A worker dies before its tokens were taken, with tokens nobody else knows of, or with fields that are done. */
  'hybrid.before-take',
  'hybrid.after-take',
  'hybrid.after-settle',
  'hybrid.before-give-back',
  /** Whoever flips dies with an epoch that nobody has opened, or that nobody knows is open. */
  'hybrid.after-flip',
  'hybrid.after-open',
  /** A leader dies in the middle of its work. */
  'hybrid.relay-minted',
  'hybrid.reconciled',
  'hybrid.bequeathed',
  /** An operator dies with a token revoked and its row unchanged. */
  'hybrid.after-revoke',
] as const

export type Failpoint = (typeof FAILPOINTS)[number]

let onHit: ((name: Failpoint) => void) | undefined

/** For a process that a test has started to die at one of them. Nobody else calls it. */
export function watchFailpoints(watch: (name: Failpoint) => void): void {
  onHit = watch
}

export function hitFailpoint(name: Failpoint): void {
  onHit?.(name)
}
