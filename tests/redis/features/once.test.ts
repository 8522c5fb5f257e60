// Work that is done once whoever asks, and the trail that every run leaves.
import { describe } from 'vitest'
import { once } from '../../stores/once.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => once(useRedisPlaces()))
