// What earlier runs of the demo left in the store, read before this run adds to it.
import type { BatchInfo } from '../../src/index.ts'
import { deadLine, statusCounts } from './plain.ts'
import { deadRows, queueRows } from './watch.ts'
import type { DeadRow, QueueRow } from './watch.ts'
import type { DemoMill } from './workload.ts'

export interface Earlier {
  readonly queues: readonly QueueRow[]
  /** Jobs that have not ended; this run goes on with them. */
  readonly unfinished: number
  readonly deadLetters: readonly DeadRow[]
  /** The newest one that is not complete. */
  readonly batch: BatchInfo | null
}

const BATCHES_LOOKED_AT = 10

export async function readEarlier(mill: DemoMill): Promise<Earlier> {
  const queues = await queueRows(mill)
  const batches = await mill.batches.list({ limit: BATCHES_LOOKED_AT })
  const unfinished = queues.map(({ counts }) => counts.scheduled + counts.queued + counts.blocked + counts.running)
  return {
    queues,
    unfinished: unfinished.reduce((sum, count) => sum + count, 0),
    deadLetters: await deadRows(mill),
    batch: batches.items.find(({ finishedAt }) => finishedAt === null) ?? null,
  }
}

export function earlierLines({ queues, unfinished, deadLetters }: Earlier): readonly string[] {
  if (statusCounts(queues) === 'no jobs') return ['there are no jobs of earlier runs']
  return [
    `jobs of earlier runs: ${statusCounts(queues)}`,
    ...(deadLetters.length === 0 ? [] : ['their last dead letters', ...deadLetters.map(deadLine)]),
    ...(unfinished === 0 ? [] : [`not ended: ${unfinished}; this run goes on from there`]),
  ]
}
