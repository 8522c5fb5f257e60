// What pushes hand over to the sessions of this process (store/hand-overs.ts): tokens of a take that stood. They pass the gate as taken
// ones do. A look fences: what takes up to its number were answered with is known by then, or goes back with that look, and must
// not be handed out when the message comes after all.
import { isPlanted } from '../../core/planted.ts'
import type { ClaimedJob } from '../../core/job.ts'
import type { Ear, HandOvers, OnBack } from '../../store/hand-overs.ts'
import { admit, dropAll } from './admit.ts'
import type { Hybrid } from './hybrid.ts'
import type { Handed } from './ports.ts'
import type { Session } from './session.ts'

const NONE: readonly ClaimedJob[] = []

/** Undefined where takes cannot stand. */
export function hybridHandOvers(hybrid: Hybrid): HandOvers | undefined {
  const { race, runtime, sessions } = hybrid
  if (race.hear === undefined) return undefined
  const hear = race.hear.bind(race)

  return {
    listen(worker, onHandOver, onBack) {
      const session = sessions.get(worker)
      if (session === undefined) return Promise.resolve(() => undefined)
      const onHanded = (handed: Handed): void => {
        deliver(hybrid, session, handed, onHandOver, onBack).catch((error: unknown) => {
          const { queue } = handed
          runtime.logger.warn(
            { worker, queue, error },
            'jobs that were handed over could not be taken; they are asked for',
          )
          // What it has taken in of them is held as far as its session knows, and goes back with the look.
          const own = session.queues.get(queue)
          if (own !== undefined) session.suspect(own)
          onBack('in-doubt')
        })
      }
      return hear(worker, onHanded, () => onBack('connected'))
    },
  }
}

async function deliver(
  hybrid: Hybrid,
  session: Session,
  { queue, tag, c, claimNo, texts }: Handed,
  ear: Ear,
  onBack: OnBack,
): Promise<void> {
  const own = session.queues.get(queue)
  // Of an epoch that is over: its rows come back by themselves.
  if (own === undefined || hybrid.view.tag(queue) !== tag) return
  const heard = own.hands.hear(c)
  if (heard === null) return
  if (heard.isMissing) session.suspect(own)
  session.heardNo = Math.max(session.heardNo, claimNo)
  const epoch = hybrid.view.row(queue)!.epoch // it has a tag
  const jobs = isFenced(session, claimNo) ? NONE : await admit(hybrid, session, own, { texts, epoch })
  // A take may have told of this very one before its message came.
  const before = session.answeredNo < claimNo ? session.answeredNo : 0
  session.answeredNo = Math.max(session.answeredNo, claimNo)
  if (isFenced(session, claimNo)) {
    // The worker has looked meanwhile. It may take nothing any more, so what is left in Redis it has to look for again.
    session.suspect(own)
    dropAll(session, jobs)
    onBack('in-doubt')
  } else if (ear({ claimNo, before, jobs }) === false) {
    dropAll(session, jobs)
  }
}

function isFenced({ fencedClaimNo }: Session, claimNo: number): boolean {
  return claimNo <= fencedClaimNo && !isPlanted('hybrid-hand-over-not-fenced')
}
