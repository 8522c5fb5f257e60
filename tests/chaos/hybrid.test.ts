// The cut of the chaos runs on the hybrid.
import { describe } from 'vitest'
import { playCut } from './cut.ts'

describe('H2 H3 hybrid under load', () => playCut('hybrid'))
