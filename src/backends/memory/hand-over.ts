// Claims that stand, and inserts that answer them in their own atom (store/hand-overs.ts).
import type { ClaimedJob } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { HandOvers } from '../../store/hand-overs.ts'
import { take } from './claim.ts'
import type { World, WorkerState } from './world.ts'

export function memoryHandOvers(world: World): HandOvers {
  return {
    listen(worker, onHandOver) {
      world.handOvers.set(worker, onHandOver)
      return Promise.resolve(() => void world.handOvers.delete(worker))
    },
  }
}

/** Gives what has become ready there to the claim that stands, if its worker can hear of it. */
export function handOver(world: World, name: string): void {
  const queue = world.queues.get(name)
  const standing = world.standing.get(name)
  if (queue === undefined || queue.config.paused || standing === undefined) return
  const worker = world.workers.get(standing.worker)
  if (worker === undefined || !mayAnswer(world, worker, standing.claimNo)) return
  const want = Math.min(standing.limit, LIMITS.handOverMax)
  const jobs: ClaimedJob[] = []
  take(world, worker, queue, { jobs, limit: want })
  if (jobs.length === 0) return
  world.standing.delete(name)
  const before = worker.lastAnswered
  worker.lastAnswered = standing.claimNo
  world.tell(standing.worker, { claimNo: standing.claimNo, before, jobs })
  if (queue.ready.depths().every((depth) => depth === 0)) world.unring(queue.readyTopic)
}

function mayAnswer(
  world: World,
  { record, lastClaimNo, lastAnswered, lastLookNo }: WorkerState,
  claimNo: number,
): boolean {
  if (record.state === 'dead' || !world.handOvers.has(record.id)) return false
  return lastClaimNo === claimNo && Math.max(lastAnswered, lastLookNo) < claimNo
}
