// A Redis store for suites that want an empty one for every test, with a clock that stands still until a test moves it.
// One server for the whole run; what a test writes lies under a prefix of its own.
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { redis } from '../../src/backends/redis/backend.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { TestStore } from '../conformance/suite.ts'
import { sharedRedis } from '../support/redis-server.ts'

export interface RedisTestStore extends TestStore {
  readonly prefix: string
  /** The same store as another process sees it; whoever asks for it stops it. */
  another(): Promise<Backend>
}

export interface TestRedis {
  /** An empty store, its clock at the start. */
  create(): Promise<RedisTestStore>
  close(): Promise<void>
}

/** An hour that is full: times in failing tests are easy to read. */
const START_MS = Date.UTC(2030, 0, 1, 12)
const SCAN_PAGE = 1_000

export interface TestRedisOptions {
  /** The one node of a Cluster: the backend treats it as one, and the clock can be read by every script. */
  readonly clusterUrl?: string
}

export async function createTestRedis({ clusterUrl }: TestRedisOptions = {}): Promise<TestRedis> {
  const url = clusterUrl ?? (await sharedRedis()).url
  const client = new Redis(url)
  return {
    async create() {
      const prefix = `t${randomBytes(5).toString('hex')}`
      const clockKey = `${prefix}:clock`
      let nowMs = START_MS
      await client.set(clockKey, nowMs)
      const another = async (): Promise<Backend> => {
        const one = redis({ ...(clusterUrl === undefined ? { url } : { cluster: [clusterUrl] }), prefix, clockKey })
        await one.start()
        return one
      }
      const backend = await another()
      const clock = {
        nowMs: () => nowMs,
        async advance(ms: number) {
          nowMs += ms
          await client.set(clockKey, nowMs)
        },
      }
      const close = async (): Promise<void> => {
        // Starts are counted, and a test may have started it again; a surplus stop changes nothing.
        await backend.stop()
        await backend.stop()
        await sweep(client, prefix)
      }
      return { backend, clock, close, another, prefix }
    },
    async close() {
      await client.quit()
    },
  }
}

async function sweep(client: Redis, prefix: string): Promise<void> {
  for (let cursor = '0'; ;) {
    const [next, keys] = await client.scan(cursor, 'MATCH', `${prefix}:*`, 'COUNT', SCAN_PAGE)
    // One by one: on a Cluster they are in different slots.
    await Promise.all(keys.map((key) => client.unlink(key)))
    if (next === '0') return
    cursor = next
  }
}
