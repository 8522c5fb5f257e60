// The worker on the hybrid: drain, deadlines, and how soon an idle one starts a job.
import { describe } from 'vitest'
import { layYardstick } from '../../postgres/features/yardstick.ts'
import { working } from '../../stores/worker.ts'
import { useHybrid } from './support.ts'

describe('hybrid', () => working(useHybrid(), layYardstick))
