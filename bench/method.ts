// How the benchmark measures, for its help and for its page.
import { CAP_MS } from './scenario.ts'

interface Sentence {
  readonly says: string
  /** Told where one of these scenarios is played; absent: always. */
  readonly about?: readonly string[]
}

const SENTENCES: readonly Sentence[] = [
  {
    says: 'The benchmark installs the peers into bench/peers the first time one is measured, and starts its own PostgreSQL and Redis on this machine.',
  },
  {
    says:
      'Every measurement gets a fresh database and fresh processes, all on the same Node; workers run in processes of their own, ' +
      'unless jobs live in memory.',
  },
  {
    says:
      'Systems take turns within a scenario, each round in another order, and so do one process and two, so that they share the ' +
      'moods of the machine and nobody always follows the same neighbour; the middle of the runs is reported, with the least and the most.',
  },
  {
    says: 'A producer of Graphile Worker is the same with its defaults and tuned: what only producers do is measured with the tuned one.',
    about: ['enqueue-single-100', 'enqueue-bulk-1000', 'footprint'],
  },
  {
    says:
      'Before the clocks start some 2000 jobs are worked off, and then more until every process has worked for more than a second ' +
      '(four rounds at most), so that nothing is new; where latency is measured 500 jobs, and where handlers take time 500 and then more.',
  },
  { says: 'In held-transaction the rounds before the last are the warm-up.', about: ['held-transaction'] },
  {
    says:
      'Before a backlog is worked off its tables are analysed, as autovacuum would do. Redis writes its log anew between ' +
      'measurements and never by itself: that took a third off a rate where it fell into one, which was luck. So none of the systems ' +
      'pays for it; Millrace would pay most, since it keeps finished jobs and the peers are told to remove theirs.',
  },
  { says: 'drain-100-fresh differs from drain-100 in nothing but that nobody analyses.', about: ['drain-100-fresh'] },
  {
    says:
      'A job counts as finished when the store says so. On the hybrid a run fails when its backlog did not go to Redis, as far as ' +
      'its window reaches; where there is no backlog before the clocks start (latency), nobody looks.',
  },
  {
    says: 'Nobody looks in produce-consume and held-transaction either.',
    about: ['produce-consume', 'held-transaction'],
  },
  {
    says: 'Bytes per job are counted on disk and in memory at rest and hardly move between runs, so one run says them.',
    about: ['footprint'],
  },
  {
    says:
      'Where 1 ms is added to a round trip, a proxy in a process of its own holds back what the system sends, not the answers. It ' +
      'shares the machine, and link_ms is what it has really added.',
    about: ['drain-100-1ms'],
  },
  {
    says:
      `A measurement stops after ${CAP_MS / 1000} s; its rate is then that of the jobs done so far, and the table says so. Latency is ` +
      'measured for as long as its timetable takes.',
  },
]

export const METHOD: readonly string[] = SENTENCES.map(({ says }) => says)

/** What is to be said where these scenarios are played. */
export function methodOf(scenarios: ReadonlySet<string>): readonly string[] {
  return SENTENCES.filter(({ about }) => about?.some((name) => scenarios.has(name)) !== false).map(({ says }) => says)
}
