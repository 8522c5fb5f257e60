// The worker on a real store: drain, deadlines, and how soon an idle one starts a job.
import { Redis } from 'ioredis'
import { describe } from 'vitest'
import { working } from '../../stores/worker.ts'
import type { Yardstick } from '../../stores/worker.ts'
import { useRedisPlaces } from './support.ts'

describe('redis', () => working(useRedisPlaces(), layYardstick))

/** A write, a message to another connection, and a command of the one that heard it. */
async function layYardstick({ url }: { readonly url: string }): Promise<Yardstick> {
  const [writer, listener, reader] = [new Redis(url), new Redis(url), new Redis(url)]
  await listener.subscribe('yardstick')
  return {
    async measure() {
      const heard = new Promise((resolve) => listener.once('message', resolve))
      const fromMs = performance.now()
      await writer.set('yardstick', 1)
      await writer.publish('yardstick', '')
      await heard
      await reader.del('yardstick')
      return performance.now() - fromMs
    },
    async close() {
      await Promise.all([writer.quit(), listener.quit(), reader.quit()])
    },
  }
}
