// Tracing: the same trace in memory as in the stores, and nothing at all without an SDK or with tracing off.
import { trace } from '@opentelemetry/api'
import { describe, expect, test, vi } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openPlace } from '../stores/place.ts'
import { seeing } from '../stores/metrics.ts'
import { recordSpans } from '../support/spans.ts'

const echo = defineJob({
  name: 'echo',
  attempts: 1,
  run: ({ input, job }: RunContext<string>) => ({ input, meta: job.meta }),
})

describe('memory', () => {
  seeing(async () => {
    const world = new World(systemClock)
    return openPlace(
      { url: '' },
      () => backendOver(world),
      () => Promise.resolve(),
    )
  })

  test('O1 without an SDK, or with tracing off, no tracer is asked for and nothing is carried', async () => {
    const asked = vi.spyOn(trace, 'getTracer')
    try {
      for (const sdk of [false, true]) {
        using spans = sdk ? recordSpans() : { all: () => [], [Symbol.dispose]: () => undefined }
        const backend = memory()
        await using mill = await createMillrace({ jobs: [echo], backend, telemetry: { tracing: !sdk } })
        await mill.work()
        const handle = await mill.enqueue(echo, 'a')
        expect(await handle.result()).toEqual({ input: 'a', meta: null })
        expect((await backend.query.get([handle.id]))[0]?.meta).toBeNull()
        expect(spans.all()).toEqual([])
      }
      expect(asked).not.toHaveBeenCalled()
    } finally {
      asked.mockRestore()
    }
  })

  test('O1 a failed write is a failed span; the reserved key of the metadata is refused', async () => {
    using spans = recordSpans()
    const backend = memory()
    await using mill = await createMillrace({ jobs: [echo], backend })
    const missing = '0190a0a0-0000-7000-8000-000000000000'
    await expect(mill.enqueue(echo, 'a', { after: missing })).rejects.toMatchObject({ code: 'DEPENDENCY_NOT_FOUND' })
    expect(spans.all().map(({ attributes }) => attributes['error.type'])).toEqual(['DEPENDENCY_NOT_FOUND'])
    await expect(mill.enqueue(echo, 'a', { meta: { $millrace: 'x' } })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })

  test('O1 a dead letter that is replayed, as itself or as a copy, still points to its first enqueue', async () => {
    using spans = recordSpans()
    let isBroken = true
    const fragile = defineJob({
      name: 'fragile',
      attempts: 1,
      run() {
        if (isBroken) throw new Error('broken')
      },
    })
    await using mill = await createMillrace({ jobs: [fragile], backend: memory() })
    await mill.work()
    const handle = await mill.enqueue(fragile)
    await expect(handle.result()).rejects.toMatchObject({ code: 'JOB_FAILED' })
    isBroken = false
    const copy = await mill.deadLetters.replayAsNew(handle.id, { actor: 'test' })
    await mill.result(copy)
    await mill.deadLetters.replay(handle.id, { actor: 'test' })
    await handle.result()
    await expect.poll(() => [spans.of(copy).length, spans.of(handle.id).length]).toEqual([2, 5])
    const [sent, ...runs] = spans.of(handle.id)
    for (const run of [spans.of(copy)[0], runs[0], runs[2]]) {
      expect(run).toMatchObject({ name: 'process default' })
      expect(run?.links[0]?.context.spanId).toBe(sent?.spanContext().spanId)
    }
  })
})
