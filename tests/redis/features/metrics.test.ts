// What is seen of jobs: traces over processes, gauges and history.
import { describe } from 'vitest'
import { seeing } from '../../stores/metrics.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => seeing(useRedisPlaces()))
