// The names of everything the hybrid keeps in Redis. All keys of a queue share its hash tag: one slot of a Cluster, one
// script call. There is no epoch in the names: `open` clears them.

/** In the order in which every script takes them. */
export type QueueKeys = readonly [state: string, high: string, normal: string, low: string, held: string]

export function queueKeys(prefix: string, queue: string): QueueKeys {
  const start = `${prefix}:{${queue}}`
  return [`${start}:state`, `${start}:high`, `${start}:normal`, `${start}:low`, `${start}:held`]
}

/** Written and removed again by whoever asks whether Redis takes writes. */
export function probeKey(prefix: string, queue: string): string {
  return `${prefix}:{${queue}}:probe`
}

/** The channel on which a push says that a queue has tokens again. */
export function bellChannel(prefix: string): string {
  return `${prefix}:bell`
}

/**
 * The channel on which a push tells a session what it hands over; and, not on a Cluster, a key of the same name: the number of
 * the claim of that session that stands.
 */
export function handsName(prefix: string, session: string): string {
  return `${prefix}:{_workers}:hands:${session}`
}

/** hash: what became of tokens. Outlives epochs. */
export function countsKey(prefix: string, queue: string): string {
  return `${prefix}:{${queue}}:counts`
}

/** hash: the live status of a job, by the name and with the fields that it has where Redis is the only store. */
export function jobKey(prefix: string, queue: string, id: string): string {
  return `${prefix}:{${queue}}:job:${id}`
}
