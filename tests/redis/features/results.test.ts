// The guard of payloads, and what a handler gives back to a producer in another process.
import { describe } from 'vitest'
import { results } from '../../stores/results.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => results(useRedisPlaces()))
