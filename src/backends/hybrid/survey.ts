// All queues of the hybrid at a glance, from both stores: for `millrace status` and `doctor`. Reads alone. The two stores are
// asked one after the other, so numbers that should be equal may differ for a moment.
import { bounded } from '../../runtime/bounded.ts'
import type { DispatchState } from '../../store/diagnosis.ts'
import type { LedgerEye, OldestReady } from '../postgres/ledger-eye.ts'
import type { QueueLook, RaceEye } from './eye.ts'
import type { Hybrid } from './hybrid.ts'
import type { DispatchRow, EpochTag } from './ports.ts'
import { guaranteeOf } from './window.ts'

export interface Surveyor {
  readonly hybrid: Hybrid
  readonly ledgerEye: LedgerEye
  readonly raceEye: RaceEye
}

export interface QueueSurvey extends DispatchState {
  readonly row: DispatchRow
  readonly tag: EpochTag | null
  /** Null: Redis cannot be asked. */
  readonly look: QueueLook | null
  /** Rows of PostgreSQL that say dispatched. */
  readonly unmarked: number
}

const LANES = [0, 1, 2] as const

export async function survey({ hybrid, ledgerEye, raceEye }: Surveyor): Promise<readonly QueueSurvey[]> {
  const { runtime, times } = hybrid
  await hybrid.epochs.refresh()
  const [oldest, waiting] = await Promise.all([ledgerEye.oldestReady(), ledgerEye.waiting()])
  const lookAt = async (queue: string): Promise<QueueLook | null> => {
    try {
      await bounded(runtime.clock, times.raceMs, 'Redis', hybrid.connect())
      return await bounded(runtime.clock, times.raceMs, 'Redis', raceEye.look(queue))
    } catch {
      return null
    }
  }
  const surveys: QueueSurvey[] = []
  let isAway = false
  for (const row of hybrid.view.rows()) {
    const { queue, mode, epoch } = row
    const look: QueueLook | null = isAway ? null : await lookAt(queue)
    isAway ||= look === null
    const { ready: backlog = 0, unmarked = 0 } = waiting.get(queue) ?? {}
    surveys.push({
      queue,
      mode,
      epoch,
      row,
      tag: hybrid.view.tag(queue),
      look,
      unmarked,
      backlog,
      waiting: look === null ? null : look.depths[0] + look.depths[1] + look.depths[2],
      inFlight: look?.inFlight ?? null,
      relayLagMs: lagOf(hybrid, row, look, oldest.get(queue)),
      windowFill: look === null ? null : Math.max(...look.depths) / Math.max(hybrid.windowTerms().window, 1),
    })
  }
  return surveys
}

/** Null: nothing is to be brought to Redis, or it cannot be asked. */
function lagOf(hybrid: Hybrid, row: DispatchRow, look: QueueLook | null, oldest: OldestReady | undefined) {
  if (look === null || row.mode !== 'token' || row.paused) return null
  const guarantee = guaranteeOf(hybrid.windowTerms())
  const ages = LANES.map((lane) => (look.depths[lane] < guarantee ? (oldest?.[lane] ?? 0) : 0))
  return Math.max(...ages)
}

export function dispatchStateOf(found: QueueSurvey): DispatchState {
  const { queue, mode, epoch, waiting, inFlight, backlog, relayLagMs, windowFill } = found
  return { queue, mode, epoch, waiting, inFlight, backlog, relayLagMs, windowFill }
}
