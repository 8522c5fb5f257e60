// What keeps a worker of the hybrid alive: beat, mark, adopt. For the main loop, and for the heartbeat thread on a connection
// of its own: a thread that loads this module loads the driver and little else.
import type { LeaseRef, WorkerId } from '../../core/job.ts'
import type { BeatReply } from '../../store/worker-store.ts'
import type { InFlightRef, SessionBeat, SessionBeatReply, SessionLedger } from './ledger-port.ts'
import { beatValues, heartbeatConnection } from './beat.ts'
import type { BeatOptions } from './beat.ts'
import { inOrder, newsOf, NO_NEWS, refArrays, refsOf } from './ledger-rows.ts'
import type { NewsJson } from './ledger-rows.ts'
import { isAbsent } from './row.ts'
import type { Row } from './row.ts'
import type { Value } from './rows-query.ts'
import { sqlText } from './sql-text.ts'
import { intArray, textArray } from './wire.ts'

export const SESSION_SQL = {
  beat: 'select millrace.beat_session($1, $2, $3, $4, $5)',
  mark: 'select alive, lost_ids, lost_leases from millrace.mark_runs($1, $2, $3, $4, $5)',
} as const

export type SessionAsk = (what: keyof typeof SESSION_SQL, values: readonly Value[]) => Promise<readonly Row[]>

const DEAD: SessionBeatReply = { alive: false, cancels: [], commands: [], epochSeen: 0, news: NO_NEWS }
/** The age of a run is a 32-bit number of milliseconds. */
const AGE_MAX_MS = 2 ** 31 - 1

export function sessionLedger(ask: SessionAsk): Omit<SessionLedger, 'close'> {
  async function mark(worker: WorkerId, epoch: number | null, refs: readonly InFlightRef[]) {
    const sorted = inOrder(refs)
    const ages = sorted.map(({ ageMs }) => Math.min(Math.max(Math.round(ageMs), 0), AGE_MAX_MS))
    const [row] = await ask('mark', [worker, epoch, ...refArrays(sorted), intArray(ages)])
    return { alive: row?.[0] === 't', lost: refsOf(row?.[1], row?.[2]) }
  }

  return {
    async beat(request: SessionBeat) {
      const { failing } = request
      const values: readonly Value[] = [...beatValues(request), failing.length === 0 ? null : textArray(failing)]
      const [row] = await ask('beat', values)
      return parseSessionBeat(row?.[0])
    },
    async mark(worker, refs): Promise<readonly LeaseRef[]> {
      if (refs.length === 0) return []
      const { alive, lost } = await mark(worker, null, refs)
      return alive ? lost : refs.map(({ jobId, lease }) => ({ jobId, lease }))
    },
    async adopt(worker, epoch, refs) {
      const { alive, lost } = await mark(worker, epoch, refs)
      return alive ? lost : null
    },
  }
}

function parseSessionBeat(text: string | null | undefined): SessionBeatReply {
  if (isAbsent(text)) return DEAD
  // Written by millrace.beat_session.
  const { base, epochSeen, news } = JSON.parse(text) as { base: BeatReply; epochSeen: number; news: NewsJson | null }
  return { ...base, epochSeen, news: newsOf(news) }
}

/** Over a connection of its own, made again whenever it is lost. */
export async function createSessionLedger(options: BeatOptions): Promise<SessionLedger> {
  const { ask, close } = heartbeatConnection(options)
  const texts = { beat: sqlText(SESSION_SQL.beat, options.schema), mark: sqlText(SESSION_SQL.mark, options.schema) }
  return { ...sessionLedger((what, values) => ask(what, texts[what], values)), close }
}
