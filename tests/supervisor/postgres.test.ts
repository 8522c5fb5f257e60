// Supervised processes on PostgreSQL.
import { describe } from 'vitest'
import { usePostgres } from '../postgres/features/support.ts'
import { supervised } from '../stores/supervised.ts'

describe('postgres', () => supervised(usePostgres()))
