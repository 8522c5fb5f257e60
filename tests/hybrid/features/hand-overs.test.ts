// Hand-overs on the hybrid: by the push that brings the token.
import { beforeAll, describe } from 'vitest'
import { useRedis } from '../../redis/support.ts'
import { handingOver } from '../../stores/hand-overs.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useHybrid } from './support.ts'

const redis = useRedis()
let server: RedisProcess

beforeAll(async () => {
  server = await redis.server()
})

const place = useHybrid({ redisUrl: () => server.url })

describe('hybrid', () => handingOver(place, () => server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')))
