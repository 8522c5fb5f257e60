// What the feature tests on Redis stand on: a prefix per test on one server, and plain commands.
import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { redis } from '../../../src/index.ts'
import type { Backend } from '../../../src/index.ts'
import { openPlace, withoutThread } from '../../stores/place.ts'
import type { Place } from '../../stores/place.ts'
import { sharedRedis } from '../../support/redis-server.ts'
import { newName } from '../support.ts'

export interface RedisPlace extends Place {
  readonly prefix: string
  /** As a person would type it into redis-cli. */
  command(name: string, ...args: readonly (string | number)[]): Promise<unknown>
}

/** Call it at the top of a test file: each call of what it answers is an empty store. */
export function useRedisPlaces(): () => Promise<RedisPlace> {
  let client: Redis
  let url: string

  beforeAll(async () => {
    ;({ url } = await sharedRedis())
    client = new Redis(url)
  })
  afterAll(() => client.quit())

  return async () => {
    const prefix = newName()
    const backend = (other?: string): Backend =>
      withoutThread(redis({ url, prefix: other === undefined ? prefix : `${prefix}-${other}` }))
    return {
      ...openPlace({ url, prefix }, backend, () => Promise.resolve()),
      prefix,
      command: (name, ...args) => client.call(name, [...args]),
    }
  }
}
