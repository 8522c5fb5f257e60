// Built-in tasks: directly, by a worker, by their schedules.
import { describe } from 'vitest'
import { tasks } from '../../stores/tasks.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => tasks(usePostgres()))
