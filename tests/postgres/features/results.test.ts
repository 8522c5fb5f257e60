// The guard of payloads, and what a handler gives back to a producer in another process.
import { describe } from 'vitest'
import { results } from '../../stores/results.ts'
import { usePostgres } from './support.ts'

describe('postgres', () => results(usePostgres()))
