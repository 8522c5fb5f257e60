// Jobs are cancelled and removed from another process than the one that runs them, and queues paused.
import { describe } from 'vitest'
import { cancelling } from '../../stores/cancel.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => cancelling(useRedisPlaces()))
