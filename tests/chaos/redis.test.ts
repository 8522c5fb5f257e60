// The cut of the chaos runs on Redis alone.
import { describe } from 'vitest'
import { playCut } from './cut.ts'

describe('redis under load', () => playCut('redis'))
