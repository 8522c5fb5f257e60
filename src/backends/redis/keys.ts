// Every key name, once for TypeScript; lua/_keys.lua mirrors it for scripts. What belongs to a queue shares its hash
// tag, so that a Cluster keeps it together. What belongs to no queue has a tag with `_` in front, or none at all: names of
// queues begin with a letter or a digit, so none of them is anybody else's.

export interface RedisKeys {
  readonly prefix: string
  /** zset: the names of the queues by the order in which they came to life. */
  readonly queues: string
  /** A part of a queue: `config`, `jobs`, `counts`, `all`, … */
  queue(queue: string, part: string): string
  /** hash: what a person reads of a job. `attempts` and `logs` hang behind it. */
  job(queue: string, id: string, part?: 'attempts' | 'logs'): string
  /** hash: one batch. `live` is the set of its jobs that have not ended. */
  batch(id: string, part?: 'live'): string
  /** zset: batches by the order in which they were created; `cancelled`: the set of those to be cleared. */
  readonly batches: string
  readonly cancelledBatches: string
  /** hash: one worker; zset: all of them; zset: those that are dead and may hold jobs. */
  worker(id: string): string
  readonly workers: string
  readonly dead: string
  /** list: what was sent to a worker and not seen yet; hash: its runs that are to be cancelled, job -> lease. */
  commands(id: string): string
  cancels(id: string): string
  /** Channel of what is handed over to a worker. */
  hands(id: string): string
  /** hash: who leads which role. */
  readonly leaders: string
  notes(part: string): string
  schedules(part: string): string
  /** Channel of hints, channel of ends, and the key that says whether anybody listens to the latter. */
  readonly bell: string
  readonly ends: string
  readonly watchers: string
}

export const DEFAULT_PREFIX = 'millrace'

/** In the place of a queue: scripts about a batch run where the batch is. */
export function batchTag(id: string): string {
  return `_batch:${id}`
}

export function redisKeys(prefix: string): RedisKeys {
  const queue = (name: string, part: string): string => `${prefix}:{${name}}:${part}`
  const queueless = (tag: string): string => `${prefix}:{${tag}}`
  const workers = (part: string): string => `${prefix}:{_workers}:${part}`
  return {
    prefix,
    queues: `${prefix}:queues`,
    queue,
    job: (name, id, part) => queue(name, part === undefined ? `job:${id}` : `job:${id}:${part}`),
    batch: (id, part) => (part === undefined ? queueless(batchTag(id)) : `${queueless(batchTag(id))}:${part}`),
    batches: `${prefix}:batches`,
    cancelledBatches: `${prefix}:batches:cancelled`,
    worker: (id) => workers(`worker:${id}`),
    workers: workers('all'),
    dead: workers('dead'),
    commands: (id) => workers(`commands:${id}`),
    cancels: (id) => workers(`cancels:${id}`),
    hands: (id) => workers(`hands:${id}`),
    leaders: workers('leaders'),
    notes: (part) => `${prefix}:{_notes}:${part}`,
    schedules: (part) => `${prefix}:{_schedules}:${part}`,
    bell: `${prefix}:bell`,
    ends: `${prefix}:ends`,
    watchers: `${prefix}:watchers`,
  }
}
