// The autoscaler on postgres.
import { describe } from 'vitest'
import { scaling } from '../../stores/scaling.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => scaling(usePostgres()))
