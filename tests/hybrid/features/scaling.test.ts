// The autoscaler on hybrid.
import { describe } from 'vitest'
import { scaling } from '../../stores/scaling.ts'
import { useHybrid } from './support.ts'

describe('hybrid', () => scaling(useHybrid()))
