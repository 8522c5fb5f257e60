// The cut of the chaos runs on PostgreSQL.
import { describe } from 'vitest'
import { playCut } from './cut.ts'

describe('postgres under load', () => playCut('postgres'))
