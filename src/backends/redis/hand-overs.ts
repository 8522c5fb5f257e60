// What inserts hand over to a worker whose claim stands: a channel per worker, told by lua/_hand-over.lua.
import type { JobId } from '../../core/job.ts'
import type { HandOvers } from '../../store/hand-overs.ts'
import { claimedJobs } from './cycle.ts'
import type { LiveRuns } from './live-runs.ts'
import type { RedisStore } from './store.ts'

/** As lua/_hand-over.lua tells it; an empty list may come as an empty object. */
type Message = readonly [
  claimNo: number,
  before: number,
  queue: string,
  hasRate: number,
  hasKeyRate: number,
  firstLease: string,
  step: number,
  ids: readonly JobId[],
  bodies: readonly string[],
  histories: readonly (number | string | false)[] | object,
]

export function redisHandOvers({ link, keys, where, logger }: RedisStore, runs: LiveRuns): HandOvers {
  return {
    async listen(worker, onHandOver, onBack) {
      const hear = (text: string): void => {
        const [claimNo, before, queue, rate, keyRate, first, step, ids, bodies, told] = JSON.parse(text) as Message
        const histories = Array.isArray(told)
          ? told.map((fact: number | string | false) => (fact === false ? null : fact))
          : []
        const taken = {
          queue,
          hasRate: rate === 1,
          hasKeyRate: keyRate === 1,
          firstLease: Number(first),
          step,
          ids,
          histories,
        }
        onHandOver({ claimNo, before, jobs: claimedJobs({ ...taken, bodyOf: (index) => bodies[index]! }, where, runs) })
      }
      const onMessage = (text: string): void => {
        try {
          hear(text)
        } catch (error) {
          logger.warn({ worker, error }, 'a message to this worker could not be read; what it holds is asked for')
          onBack('in-doubt')
        }
      }
      return link.subscribe(keys.hands(worker), onMessage, () => onBack('connected'))
    },
  }
}
