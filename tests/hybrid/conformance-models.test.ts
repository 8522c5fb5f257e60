// The rules of the hybrid keep the promises of the contract, over the ledger and the race in memory: step by step, and by the ways
// that are taken under load.
import { describe, expect, test } from 'vitest'
import { backendSuite } from '../conformance/suite.ts'
import { createModelStore } from './model-store.ts'
import { HYBRID_FAST_SKIPS, HYBRID_SKIPS } from './skips.ts'
import { fastJobs } from './step-backend.ts'

backendSuite({ name: 'hybrid over models', skips: HYBRID_SKIPS, create: () => createModelStore() })

describe('under load', () => {
  backendSuite({ name: 'hybrid over models', skips: HYBRID_FAST_SKIPS, create: () => createModelStore(true) })

  // After all of them, which are run in this order.
  test('jobs were minted by their insert', () => expect(fastJobs.count).toBeGreaterThan(1_000))
})
