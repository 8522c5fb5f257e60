// A run of the hybrid whose jobs did not go through Redis measures something else, and fails.
import { expect, test } from 'vitest'
import type { Stage } from '../../bench/scenario.ts'
import { checkDispatched } from '../../bench/warm-up.ts'

function stageWith(dispatched: number | undefined): Stage {
  const dispatch = { most: 1_000, count: () => Promise.resolve(dispatched ?? 0) }
  return { system: dispatched === undefined ? {} : { dispatch } } as unknown as Stage // nothing else of it is looked at
}

test('jobs that should be in Redis and are not are an error; a system without two places is not asked', async () => {
  await checkDispatched(stageWith(undefined), 500)
  await checkDispatched(stageWith(480), 500)
  // More than there is room for wait in PostgreSQL.
  await checkDispatched(stageWith(1_000), 50_000)
  await expect(checkDispatched(stageWith(300), 500)).rejects.toThrow('only 300 of 500 jobs went to Redis')
  await expect(checkDispatched(stageWith(0), 50_000)).rejects.toThrow('only 0')
})
