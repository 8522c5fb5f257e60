// What is smaller in a cell than it may be in production, so that nobody takes a pass for more than it is.
import type { Times } from './scenario.ts'

/** Of the redis scenarios that are away for longer than a ttl. */
const GONE_TTLS = 1.2

export function scaledDown({ phaseMs, ttlMs, ratePerS, blockedMs, dueJobs, crowd }: Times): readonly string[] {
  const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(1))} s`
  const twoPhases = seconds(2 * phaseMs)
  const twoTtls = seconds(2 * ttlMs)
  return [
    `the load is ${ratePerS} jobs a second where a scenario does not say another, on two workers of 20 slots: what breaks only at the limit of the machine is not seen`,
    'each fault is one sample in each cell: a recovery is the worst of some jobs, no percentile of many kills',
    `repeated-kill lasts ${twoPhases}, some three kills, and the rate is taken over them; not minutes of kills and the rate after them`,
    `worker-stopped and link-blackhole last two ttls (${twoTtls}) and happen once`,
    `loop-blocked blocks for ${seconds(blockedMs)}`,
    'out-of-memory fills a heap of 64 MiB in one process, not the memory of the machine',
    `pg-backend-kill ends backends twice a second for ${seconds(phaseMs)}, not ten times`,
    `idle-in-tx holds its transaction for ${twoPhases}, not for ten minutes: dead rows are those of seconds. Rates are compared, latencies are not`,
    'disk-full is a disk of 256 MB that is filled by somebody else, and has room for three more segments of the log',
    'redis-wipe empties Redis once, with some sixty jobs waiting beside those that run; not a backlog of a hundred thousand',
    `redis-gone and redis-full last ${seconds(Math.max(phaseMs, ttlMs * GONE_TTLS))}, a little more than a ttl, not a minute`,
    'link-latency is the same for every packet: no jitter, no loss',
    'lost-commit-reply and lost-script-reply lose ten answers on each link',
    `garbage-hints are written five times a second for ${twoPhases}: dozens of blows`,
    `due-at-once has ${dueJobs} jobs, workers-reconnect ${crowd} workers in four processes of one machine`,
    'leader-at-tick strikes three leaders at three ticks; more of them are played by the simulator (`npm run sim`)',
    'all processes share one machine and its disk: nothing is said of two data centres',
  ]
}
