// What pushes hand over to the sessions of this process (store/hand-overs.ts): tokens of a take that stood. They pass the gate as taken
// ones do. A look fences: what takes up to its number were answered with is known by then, or goes back with that look, and must
// not be handed out when the message comes after all.
import { isPlanted } from '../../core/planted.ts'
import type { HandOver, HandOvers } from '../../store/hand-overs.ts'
import { admit, dropAll } from './admit.ts'
import type { Hybrid } from './hybrid.ts'
import type { Handed } from './ports.ts'
import type { Session } from './session.ts'

/** Redis may be away when a worker starts. */
const SUBSCRIBE_AGAIN_MS = 5_000

/** Undefined where takes cannot stand. */
export function hybridHandOvers(hybrid: Hybrid): HandOvers | undefined {
  const { race, runtime, sessions } = hybrid
  if (race.hear === undefined) return undefined
  const hear = race.hear.bind(race)

  return {
    listen(worker, onHandOver, onBack) {
      const session = sessions.get(worker)
      if (session === undefined) return Promise.resolve(() => undefined)
      const onHanded = (handed: Handed): void => void deliver(hybrid, session, handed, onHandOver)
      return new Promise((resolve) => {
        const subscribe = (): void => {
          if (session.isOver || sessions.get(worker) !== session) return
          hear(worker, onHanded, onBack).then(resolve, (error: unknown) => {
            runtime.logger.debug(
              { worker, error },
              'jobs cannot be handed over to this worker yet; it claims them when it is rung',
            )
            runtime.clock.timer(SUBSCRIBE_AGAIN_MS, subscribe)
          })
        }
        subscribe()
      })
    },
  }
}

async function deliver(
  hybrid: Hybrid,
  session: Session,
  handed: Handed,
  onHandOver: (handOver: HandOver) => void,
): Promise<void> {
  const { queue, tag, c, claimNo, texts } = handed
  const own = session.queues.get(queue)
  // Of an epoch that is over: its rows come back by themselves.
  if (own === undefined || hybrid.view.tag(queue) !== tag) return
  const heard = own.hands.hear(c)
  if (heard === null) return
  if (heard.isMissing) session.suspect(own)
  // A take may have told of this very one before its message came.
  const before = session.answeredNo < claimNo ? session.answeredNo : 0
  session.answeredNo = Math.max(session.answeredNo, claimNo)
  // The worker has looked since, where this queue could not be asked.
  if (isFenced(session, claimNo)) return session.suspect(own)
  const epoch = hybrid.view.row(queue)!.epoch // it has a tag
  const jobs = await admit(hybrid, session, own, { texts, epoch })
  if (jobs.length === 0) return
  if (isFenced(session, claimNo)) dropAll(session, jobs)
  else onHandOver({ claimNo, before, jobs })
}

function isFenced({ fencedClaimNo }: Session, claimNo: number): boolean {
  return claimNo <= fencedClaimNo && !isPlanted('hybrid-hand-over-not-fenced')
}
