// Supervised processes on Redis.
import { describe } from 'vitest'
import { useRedisPlaces } from '../redis/features/support.ts'
import { supervised } from '../stores/supervised.ts'

describe('redis', () => supervised(useRedisPlaces()))
