// What is seen of jobs: traces over processes, gauges and history.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../../src/index.ts'
import { seeing } from '../../stores/metrics.ts'
import { useRedisPlaces } from './support.ts'

const noop = defineJob({ name: 'noop', run: () => undefined })
const place = useRedisPlaces()

describe('redis', () => {
  seeing(place)

  test('O1 the memory of Redis is a gauge', async () => {
    await using at = await place()
    const mill = await at.process([noop])
    await mill.enqueue(noop)
    const [gauges] = await mill.metrics.gauges()
    const name = expect.stringMatching(/:\d+$/) as string
    expect(gauges?.servers).toMatchObject([{ kind: 'redis', name, memory: { maxBytes: null } }])
    expect(gauges?.servers[0]?.memory?.usedBytes).toBeGreaterThan(100_000)
    expect(await mill.metrics.text()).toMatch(
      /^millrace_redis_memory_used_bytes\{connection="default",server="[^"]+"\} \d+$/m,
    )
  })
})
