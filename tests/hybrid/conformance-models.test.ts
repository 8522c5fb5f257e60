// The rules of the hybrid keep the promises of the contract, over the ledger and the race in memory.
import { backendSuite } from '../conformance/suite.ts'
import { createModelStore } from './model-store.ts'
import { HYBRID_SKIPS } from './skips.ts'

backendSuite({ name: 'hybrid over models', skips: HYBRID_SKIPS, create: createModelStore })
