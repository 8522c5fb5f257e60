// Why each peer is set up as it is, for docs/reliability.md: a paragraph in our words beside its `settings`, and the
// pages of its own documentation that it rests on.

export interface PeerNote {
  readonly text: string
  readonly sources: readonly string[]
}

export const PEER_NOTES: Readonly<Record<string, PeerNote>> = {
  bullmq: {
    text:
      'A job of BullMQ is guarded by a lock that its worker renews. Workers look for jobs whose lock is gone and take one ' +
      'back at the second look, so a job of a killed worker waits for its lock and up to one interval between looks: half ' +
      'a minute to a minute at the defaults, which its pages advise to keep. A scenario with a ttl shortens both. The ' +
      'third stall fails a job here, not the second, as the third crash does in Millrace. A handler that blocks the event ' +
      'loop also blocks the renewal. The answer of BullMQ to that are handlers in files, which run in processes of their ' +
      'own; the scenarios give every system a function, so they are not used. Redis writes its log every second, as the ' +
      'page on going to production recommends.',
    sources: [
      'https://docs.bullmq.io/guide/going-to-production',
      'https://docs.bullmq.io/guide/workers/stalled-jobs',
      'https://docs.bullmq.io/guide/postgresql',
    ],
  },
  'pg-boss': {
    text:
      'Out of the box pg-boss takes a job back when it has been active for fifteen minutes. With `heartbeatSeconds` its ' +
      'workers report every job, and one that was not reported for that long is retried by the next look at the queue. ' +
      'Both are set to the least that it accepts: ten seconds, and a look every second instead of every minute. A lost ' +
      'worker counts as a failed attempt, so it has as many attempts as a job of Millrace. Jobs are fetched one by one: ' +
      'a batch is settled as a whole, and whoever is killed in the middle of one repeats what was done. That costs ' +
      'throughput, which is not what is compared here.',
    sources: ['https://pgboss.io/api/queues', 'https://pgboss.io/api/workers', 'https://pgboss.io/api/constructor'],
  },
  'graphile-worker': {
    text:
      'Graphile Worker locks a job for four hours and has no setting for it; heartbeats are part of its paid edition. What ' +
      'a killed worker held is therefore still there and `stuck` in every cell, unless somebody who knows that the worker ' +
      'is dead unlocks it by hand, which nobody does here. The statement that completes a job is sent and not awaited: ' +
      'when it fails the process ends. Batching of completions would let a stop wait for them, but a runner whose batch ' +
      'failed hung in its shutdown in two of three restarts of PostgreSQL, so it stays off, as by default. Jobs that fail ' +
      'are retried with delays that grow by a factor of 2.7, which cannot be changed either.',
    sources: [
      'https://worker.graphile.org/docs/error-handling',
      'https://worker.graphile.org/docs/pro/recovery',
      'https://worker.graphile.org/docs/config',
    ],
  },
}
