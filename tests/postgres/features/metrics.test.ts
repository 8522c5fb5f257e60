// What is seen of jobs: traces over processes, gauges and history.
import { describe } from 'vitest'
import { seeing } from '../../stores/metrics.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => seeing(usePostgres()))
