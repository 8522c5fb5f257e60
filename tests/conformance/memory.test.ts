// The memory backend keeps every promise; nothing is skipped.
import { memory } from '../../src/backends/memory/backend.ts'
import { ManualClock } from './manual-clock.ts'
import { backendSuite } from './suite.ts'

backendSuite({
  name: 'memory',
  async create() {
    const clock = new ManualClock()
    const backend = memory({ clock })
    await backend.start()
    return { backend, clock, close: () => backend.stop() }
  },
})
