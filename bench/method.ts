// How the benchmark measures, for its help and for its page.
import { CAP_MS } from './scenario.ts'

export const METHOD: readonly string[] = [
  'The benchmark installs the peers into bench/peers on first use and starts its own PostgreSQL and Redis on this machine.',
  'Every measurement gets a fresh database and fresh processes, all on the same Node; workers run in processes of their own, ' +
    'unless jobs live in memory.',
  'Systems take turns within a scenario, and so do one process and two, so that they share the moods of the machine; the middle ' +
    'of the runs is reported, with the least and the most.',
  'Before the clocks start some 2000 jobs are worked off, and then more until every process has worked for more than a second ' +
    '(four rounds at most), so that nothing is new; ' +
    'where latency is measured 500 jobs, and in held-transaction the rounds before the last are the warm-up.',
  'Before a backlog is worked off its tables are analysed, as autovacuum would do (not in drain-100-fresh, which differs in ' +
    'nothing else). Redis writes its log anew between measurements and never by itself: that took a third off a rate where it fell ' +
    'into one, which was luck. So none of the systems pays for it; Millrace would pay most, since it keeps finished jobs and the ' +
    'peers are told to remove theirs.',
  'A job counts as finished when the store says so. On the hybrid a run fails when its backlog did not go to Redis; where there ' +
    'is none before the clocks start (latency, produce-consume) and in held-transaction, nobody looks.',
  'Where 1 ms is added to a round trip, a proxy in a process of its own holds back what the system sends, not the answers. It ' +
    'shares the machine, and link_ms is what it has really added.',
  `A measurement stops after ${CAP_MS / 1000} s; its rate is then that of the jobs done so far, and the table says so. Latency is ` +
    'measured for as long as its timetable takes.',
]
