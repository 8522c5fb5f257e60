// The rules of the hybrid against the model, over the ledger and the race in memory.
import { createModelStore } from '../hybrid/model-store.ts'
import { modelSuite } from './model-suite.ts'

modelSuite({ name: 'hybrid over models', runs: 40, create: () => createModelStore() })
