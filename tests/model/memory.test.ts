// The memory backend against the model, order of starts included.
import { memory } from '../../src/backends/memory/backend.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { modelSuite } from './model-suite.ts'

modelSuite({
  name: 'memory',
  runs: 250,
  exactShare: true,
  async create() {
    const clock = new ManualClock()
    const backend = memory({ clock })
    await backend.start()
    return { backend, clock, close: () => backend.stop() }
  },
})
