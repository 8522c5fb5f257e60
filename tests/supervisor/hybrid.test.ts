// Supervised processes on PostgreSQL with Redis before it.
import { describe } from 'vitest'
import { useHybrid } from '../hybrid/features/support.ts'
import { supervised } from '../stores/supervised.ts'

describe('hybrid', () => supervised(useHybrid()))
