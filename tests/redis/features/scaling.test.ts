// The autoscaler on redis.
import { describe } from 'vitest'
import { scaling } from '../../stores/scaling.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => scaling(useRedisPlaces()))
