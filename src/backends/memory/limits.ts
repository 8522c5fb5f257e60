// Tokens at the start of rate-limited jobs. All buckets of a job give a token, or none does.
import { nextTokenInMs, takeStart } from '../../core/rate.ts'
import type { RateState } from '../../core/rate.ts'
import type { LimitStore, LimitUse, RateReply, RateRequest } from '../../store/limit-store.ts'
import { ratesOf } from './admission.ts'
import { scoped } from './world.ts'
import type { World } from './world.ts'

export function memoryLimits(world: World): LimitStore {
  return {
    take: (requests) => world.run(() => requests.map((request) => take(world, request))),
    inspect: (queue, key) => world.run(() => inspect(world, queue, key)),
  }
}

function take(world: World, { queue: name, key }: RateRequest): RateReply {
  const queue = world.queues.get(name)
  if (queue === undefined) return { ok: true }
  const nowMs = world.nowMs()
  const granted: [string, RateState][] = []
  let waitMs = 0
  for (const [bucket, limit] of ratesOf(queue, { queue: name, limitKey: key })) {
    const reply = takeStart(world.rates.get(bucket), limit, nowMs)
    if (reply.ok) {
      granted.push([bucket, reply.state])
    } else {
      // The refused one keeps its place in the line of that bucket.
      world.rates.set(bucket, reply.state)
      waitMs = Math.max(waitMs, reply.waitMs)
    }
  }
  if (waitMs > 0) return { ok: false, waitMs }
  for (const [bucket, state] of granted) world.rates.set(bucket, state)
  return { ok: true }
}

function inspect(world: World, name: string, key: string | undefined): LimitUse {
  const queue = world.queues.get(name)
  if (queue === undefined) return { slotsUsed: 0, slotsLimit: null, waiting: 0, nextTokenInMs: null }
  const { limits } = queue.config
  const gate = key === undefined ? queue.slots : world.keySlots.get(scoped(name, key))
  const rate = key === undefined ? limits.rate : limits.perKeyRate
  return {
    slotsUsed: gate?.used ?? 0,
    slotsLimit: key === undefined ? limits.concurrency : limits.perKeyConcurrency,
    waiting: gate?.waiting.size ?? 0,
    nextTokenInMs: rate === null ? null : nextTokenInMs(world.rates.get(scoped(name, key ?? '')), rate, world.nowMs()),
  }
}
