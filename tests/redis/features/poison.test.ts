// A job that takes its process with it, and those that run beside it.
import { describe } from 'vitest'
import { poison } from '../../stores/poison.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => poison(useRedisPlaces()))
