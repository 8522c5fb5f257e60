// Retries that live in the store, error classes, what a handler may answer, and dead letters.
import { describe } from 'vitest'
import { retrying } from '../../stores/retry.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => retrying(useRedisPlaces()))
