// Kinds of jobs: what is kept for them across runs, where they live, and that they run without a queue.
import { describe } from 'vitest'
import { kinds } from '../../stores/kinds.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => kinds(usePostgres()))
