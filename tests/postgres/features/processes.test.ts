// What only real processes show: a blocked loop, a kill without a word, and a job that takes its process with it.
import { describe } from 'vitest'
import { inProcesses } from '../../stores/processes.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => inProcesses(usePostgres()))
