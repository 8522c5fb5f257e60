// Hints of the memory backend: listeners of this process, called after the atom that rang.
import type { Topic, Wakeups } from '../../store/wakeups.ts'
import type { World } from './world.ts'

export function memoryWakeups(world: World): Wakeups {
  return {
    listen(topics, onHint) {
      for (const topic of topics) add(world, topic, onHint)
      return () => {
        for (const topic of topics) remove(world, topic, onHint)
      }
    },
  }
}

function add(world: World, topic: Topic, onHint: (topic: Topic) => void): void {
  let listeners = world.listeners.get(topic)
  if (listeners === undefined) {
    world.listeners.set(topic, (listeners = new Set()))
    if (isFinished(topic)) world.finishedListeners += 1
  }
  listeners.add(onHint)
}

function remove(world: World, topic: Topic, onHint: (topic: Topic) => void): void {
  const listeners = world.listeners.get(topic)
  listeners?.delete(onHint)
  if (listeners?.size !== 0) return
  world.listeners.delete(topic)
  if (isFinished(topic)) world.finishedListeners -= 1
}

function isFinished(topic: Topic): boolean {
  return topic.startsWith('finished:')
}
