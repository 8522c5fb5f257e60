// The worker on a real store: drain, deadlines, and how soon an idle one starts a job.
import { describe } from 'vitest'
import { working } from '../../stores/worker.ts'
import { usePostgres } from './support.ts'
import { layYardstick } from './yardstick.ts'

describe('postgres', () => working(usePostgres(), layYardstick))
