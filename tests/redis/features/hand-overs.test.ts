// Hand-overs on Redis alone.
import { beforeAll, describe } from 'vitest'
import { redis as redisBackend } from '../../../src/index.ts'
import { handingOver } from '../../stores/hand-overs.ts'
import { openPlace } from '../../stores/place.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { newName, useRedis } from '../support.ts'

const redis = useRedis()
let server: RedisProcess

beforeAll(async () => {
  server = await redis.server()
})

const place = async () => {
  const { url } = server
  const prefix = newName()
  return openPlace(
    { url, prefix },
    () => redisBackend({ url, prefix }),
    () => Promise.resolve(),
  )
}

describe('redis', () => handingOver(place, () => server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')))
