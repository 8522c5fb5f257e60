// Recurring jobs, batches and limits, with two processes at them at once.
import { describe } from 'vitest'
import { groups } from '../../stores/groups.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => groups(useRedisPlaces()))
