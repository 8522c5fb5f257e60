// Work that is done once whoever asks, and the trail that every run leaves.
import { describe } from 'vitest'
import { once } from '../../stores/once.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => once(usePostgres()))
