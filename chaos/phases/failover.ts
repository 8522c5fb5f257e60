// PostgreSQL is killed and its standby takes over: one that has every commit, and one that lacks the last of them.
import { crowd } from '../crowd.ts'
import { withStandby } from '../own-stores.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'
import type { Place } from '../system.ts'

const ON_POSTGRES = ['postgres', 'hybrid'] as const
const REACTION_S = 5
const LACKS = 'an asynchronous standby lacks what it had not received'

export const FAILOVER_SCENARIOS: readonly Scenario[] = [
  {
    name: 'postgres-failover',
    says: 'PostgreSQL is stopped at once, as by a crash, and its synchronous standby takes over',
    backends: ON_POSTGRES,
    peers: 'asked',
    stores: (usual) => withStandby(usual, 'sync'),
    async strike(stage) {
      const atMs = Date.now()
      stage.moveTo(await promoted(stage))
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: { recoveryMaxS: REACTION_S },
  },
  {
    name: 'postgres-failover-async',
    says:
      'the same with an asynchronous standby that is cut off before: jobs that it never received are lost, ends that it ' +
      'never heard of happen again; all that it had is done',
    backends: ON_POSTGRES,
    // They keep no record that tells what the standby had.
    peers: 'never',
    stores: (usual) => withStandby(usual, 'async'),
    async strike(stage, { ttlMs }) {
      const pair = stage.own!.pair!
      const before = [...stage.books().acked.keys()]
      await pair.caughtUp()
      const sinceMs = Date.now()
      await pair.standby.cut()
      await crowd(stage)
      const atMs = Date.now()
      const place = await promoted(stage)
      // Nobody is there yet: it has what it had received.
      const received = (await stage.system.record!(place)).map(({ id }) => id)
      const kept = new Set([...before, ...received])
      if ([...stage.books().acked.keys()].every((id) => kept.has(id))) throw new Error('the standby lacked nothing')
      stage.moveTo(place)
      const backMs = Date.now()
      return { atMs, backMs, robbed: [], forgot: { fromMs: sinceMs, toMs: backMs + ttlMs }, kept }
    },
    promise: { recoveryMaxS: REACTION_S },
    mayLose: { postgres: LACKS, hybrid: LACKS },
  },
]

/** The primary is gone for good, the standby takes writes. */
async function promoted({ own, place }: Stage): Promise<Place> {
  const { primary, standby } = own!.pair!
  await primary.stop('immediate')
  await standby.promote()
  const url = new URL(place.postgres!)
  url.port = String(standby.port)
  return { ...place, postgres: url.href }
}
