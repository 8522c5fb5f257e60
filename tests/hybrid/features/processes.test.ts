// What only real processes show, on the hybrid: a blocked loop, and a kill without a word.
import { describe } from 'vitest'
import { inProcesses } from '../../stores/processes.ts'
import { useHybrid } from './support.ts'

describe('hybrid', () => inProcesses(useHybrid()))
