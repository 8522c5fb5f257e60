// Queue records of the memory backend.
import { LIMITS } from '../../core/limits.ts'
import { defaultQueue } from '../../store/queue-defaults.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import { CONFIG_TOPIC, SCHEDULED_TOPIC } from '../../store/wakeups.ts'
import { applyLimits } from './limit-change.ts'
import { QueueState } from './world.ts'
import type { World } from './world.ts'

export function memoryQueues(world: World): QueueStore {
  return {
    ensure: (queues) =>
      world.run(() =>
        queues.map((settings) => {
          const found = world.queues.get(settings.name)
          if (found !== undefined) return found.config
          const config = { ...settings, paused: false, createdAtMs: world.nowMs(), version: 1 }
          world.queues.set(settings.name, new QueueState(config))
          world.ring(CONFIG_TOPIC)
          return config
        }),
      ),
    configure: (name, change, expectVersion) =>
      world.run(() => {
        const version = world.queues.get(name)?.config.version ?? 0
        if (expectVersion !== undefined && expectVersion !== version) return null
        if (!world.queues.has(name)) {
          const config = { ...defaultQueue(name), paused: false, createdAtMs: world.nowMs(), version: 0 }
          world.queues.set(name, new QueueState(config))
        }
        const queue = world.queue(name)
        queue.config = { ...queue.config, ...change, name, version: queue.config.version + 1 }
        queue.ready.setBounds(queue.config.lanes)
        if (change.limits !== undefined) {
          world.relimited.add(name)
          applyLimits(world, LIMITS.maintenanceBatchMax)
        }
        world.ring(CONFIG_TOPIC)
        world.ring(queue.readyTopic)
        if (world.relimited.size > 0) world.ring(SCHEDULED_TOPIC)
        return queue.config
      }),
    get: (name) => world.run(() => world.queues.get(name)?.config ?? null),
    list: () => world.run(() => [...world.queues.values()].map(({ config }) => config)),
  }
}
