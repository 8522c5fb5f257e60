// From the books, the record of the system and what was done to it: the cell. Pure; play.ts gathers what it needs.
import type { Books } from './books.ts'
import type { Cell } from './cell.ts'
import * as delivery from './checks/delivery.ts'
import type { Robbed } from './checks/delivery.ts'
import { idle, takesAfterMs } from './checks/idle.ts'
import { groupDepth, outOfOrder } from './checks/order.ts'
import { begunInDoubt, withLeases } from './checks/lease.ts'
import * as pace from './checks/pace.ts'
import { batchWords, wrongBatches, wrongTicks } from './checks/side.ts'
import { promisedOf } from './promise.ts'
import type { Promised } from './promise.ts'
import type { Scenario, Struck } from './scenario.ts'
import type { Backend, Census, Recorded, SideFacts } from './system.ts'

/** A process that ended by itself, and the last that it said. */
export interface Quit {
  readonly pid: number
  readonly words: string
}

export interface Evidence {
  readonly scenario: Scenario
  readonly system: string
  readonly backend: Backend
  readonly isOurs: boolean
  readonly books: Books
  /** Absent: the system keeps none. */
  readonly recorded: readonly Recorded[] | undefined
  readonly census: Census
  /** Absent: it has no such features, its store was allowed to forget them, or nobody offered anything. */
  readonly side: SideFacts | undefined
  readonly struck: Struck
  /** Every worker process there was. */
  readonly workers: readonly number[]
  /** Those that were alive at the end of the load. */
  readonly alive: readonly number[]
  /** Undefined: its default. */
  readonly ttlMs: number | undefined
  readonly ratePerS: number
  readonly isShort: boolean
  readonly load: pace.Span
  readonly refused: number
  /** Processes that ended by themselves. */
  readonly quits: readonly Quit[]
  readonly seconds: number
}

export function judge(evidence: Evidence): Cell {
  const { scenario, books, recorded, struck, isOurs, census, side, ttlMs } = evidence
  // Nobody here knows when a peer takes somebody for dead.
  const silent = isOurs ? withLeases(struck.robbed, ttlMs) : struck.robbed
  const robbed: readonly Robbed[] = [...silent, ...forgetful(evidence)]
  const expected = new Set(struck.failed)
  // Whoever took the pill was killed by it.
  const poisoned = new Set(books.runs.flatMap(({ id, pid }) => (expected.has(id) ? [pid] : [])))
  const quits = evidence.quits.filter(({ pid }) => !poisoned.has(pid))
  const missing = delivery.unfinished(books).filter((id) => !expected.has(id))
  const unrecorded = recorded === undefined ? missing : delivery.lostByRecord(books, recorded)
  const gone = new Set([...missing, ...unrecorded.filter((id) => !expected.has(id))])
  // A job that ran to its end in a store that then forgot it is not lost; its record is.
  const given = scenario.mayLose?.[evidence.backend]
  const lostAll = given === undefined ? [...gone] : missing
  const unexcused = given === undefined ? lostAll : delivery.lostForNothing(lostAll, books, struck)
  const stuckOf = (ids: readonly string[]): number =>
    recorded === undefined
      ? delivery.stillCounted(ids.length, census, expected.size)
      : delivery.stillThere(ids, recorded)
  const stuck = stuckOf(lostAll)
  // By number alone: what is still there is none of those that the store has forgotten.
  const lost = unexcused.length - stuckOf(unexcused)
  const again = delivery.startedAgain(books, robbed)
  const restarts = pace.restartsOf(books, struck.robbed)
  const hasRecovered = restarts.never.every((id) => expected.has(id))
  const againMs = restarts.lastMs ?? (scenario.goesOn ? null : pace.firstStartMs(books, struck.backMs))
  const recoveryMs = hasRecovered ? againMs : null
  const before = pace.endsPerSecond(books, { fromMs: evidence.load.fromMs, toMs: struck.atMs })
  const since = pace.endsPerSecond(books, { fromMs: struck.atMs, toMs: evidence.load.toMs })
  const { steady } = scenario.promise ?? {}
  const steadyMs =
    steady === undefined
      ? null
      : pace.steadyAfterMs(books, { fromMs: struck.backMs, toMs: evidence.load.toMs }, evidence.ratePerS * steady.share)
  const findings = struck.findings?.(books, side)
  const batches = side === undefined ? undefined : wrongBatches(side.batches, books.batches)
  const takesMs = evidence.ratePerS > 0 ? takesAfterMs(books, evidence.alive, struck.backMs) : []
  const slowestMs = Math.max(...takesMs)
  const measured: Measured = {
    scenario: scenario.name,
    system: evidence.system,
    backend: evidence.backend,
    enqueued: books.acked.size,
    refused: evidence.refused,
    ...(books.withheld > 0 && { withheld: books.withheld }),
    completed: books.acked.size - delivery.unfinished(books).length,
    lost,
    givenUp: lostAll.length - stuck - lost,
    stuck,
    unexpected: delivery.unexpected(books, recorded).length,
    stale: recorded === undefined ? null : delivery.stale(books, recorded, given !== undefined).length,
    duplicated: again.allowed.length + again.forbidden.length,
    duplicatesAllowed: again.allowed.length,
    overlaps: delivery.overlapping(books, robbed).length,
    // A job whose end was forgotten runs again, after those that followed it.
    disorder: isOurs && given === undefined ? outOfOrder(books, robbed).length : null,
    ...(isOurs && { groupDepth: groupDepth(books) }),
    miscounted: batches === undefined ? null : new Set(Object.values(batches).flat()).size,
    wrongTicks: side === undefined ? null : wrongTicks(side.ticksMs, side.tickEveryMs, evidence.load),
    recoverySeconds: recoveryMs === null ? null : recoveryMs / 1000,
    throughputRatio: before === 0 ? null : since / before,
    steadySeconds: steadyMs === null ? null : steadyMs / 1000,
    ...(Number.isFinite(slowestMs) && { allTakingSeconds: slowestMs / 1000 }),
    quits: quits.length,
    ttlSeconds: evidence.ttlMs === undefined ? null : evidence.ttlMs / 1000,
    offeredPerSecond: evidence.ratePerS,
    promised: isOurs ? promisedOf(evidence) : null,
    seconds: evidence.seconds,
  }
  // Ours must not. Some peers do by design, and somebody has started them again: of them it is told.
  const ended = quits.map(({ words }) => `a process ended by itself: ${words}`)
  const broken = [
    ...brokenAlways(measured, scenario),
    ...(scenario.interrupts && restarts.interrupted === 0 ? ['the fault interrupted nothing'] : []),
    ...(measured.promised === null ? [] : brokenPledges(measured, measured.promised)),
    // Peers are started again whenever they end, also shortly before the end of the load.
    ...(isOurs ? idle(takesMs, { fromMs: struck.backMs, toMs: evidence.load.toMs }) : []),
    ...(batches === undefined ? [] : batchWords(batches)),
    ...(side?.batches.length === 0 ? ['no batch was counted'] : []),
    ...unfailed(evidence),
    ...(isOurs ? inDoubt(begunInDoubt(books, struck.robbed, ttlMs).length) : []),
    ...(findings?.broken ?? []),
    ...(isOurs ? [...(struck.flaws ?? []), ...ended] : []),
  ]
  const withheld =
    books.withheld > 0 ? [`${books.withheld} due jobs were not offered: too many calls had no answer`] : []
  const notes = [
    ...broken,
    ...(isOurs ? [] : ended),
    ...withheld,
    ...(measured.givenUp > 0 ? [`contract: ${given}`] : []),
  ]
  const figures = findings === undefined ? {} : { figures: findings.figures }
  return { ...measured, ...figures, ok: broken.length === 0, note: notes.join('; ') }
}

function inDoubt(count: number): readonly string[] {
  return count === 0 ? [] : [`${count} begun by a worker that was cut off for longer than its ttl`]
}

type Measured = Omit<Cell, 'ok' | 'note'>

/** Where the store forgot who had what, everybody was robbed, of what was there before it came back. */
function forgetful({ struck: { forgot, backMs }, workers, books }: Evidence): readonly Robbed[] {
  if (forgot === undefined) return []
  const ids = delivery.askedUntil(books, backMs)
  return workers.map((pid) => ({ pid, ...forgot, ids }))
}

function brokenAlways(cell: Measured, { mayLose }: Scenario): readonly string[] {
  const forbidden = cell.duplicated - cell.duplicatesAllowed
  const although = mayLose?.[cell.backend] === undefined ? '' : ' although the store had them or was back'
  return [
    ...(cell.enqueued === 0 ? ['nothing was enqueued'] : []),
    ...(cell.lost > 0 ? [`${cell.lost} lost${although}`] : []),
    ...(cell.stuck > 0 ? [`${cell.stuck} stuck`] : []),
    ...(cell.unexpected > 0 ? [`${cell.unexpected} unexpected`] : []),
    ...((cell.stale ?? 0) > 0 ? [`${cell.stale} stale results applied`] : []),
    ...(forbidden > 0 ? [`${forbidden} run twice by live workers`] : []),
    ...(cell.overlaps > 0 ? [`${cell.overlaps} overlaps`] : []),
    ...((cell.disorder ?? 0) > 0 ? [`${cell.disorder} out of order`] : []),
    ...((cell.wrongTicks ?? 0) > 0 ? [`${cell.wrongTicks} ticks wrong`] : []),
  ]
}

function brokenPledges(cell: Measured, { recoveryMaxS, ratioMin, steady }: Promised): readonly string[] {
  const isLate = recoveryMaxS !== null && (cell.recoverySeconds ?? Infinity) > recoveryMaxS
  const isSlow = ratioMin !== null && (cell.throughputRatio ?? 0) < ratioMin
  const isUnsteady = steady !== null && (cell.steadySeconds ?? Infinity) > steady.withinS
  return [
    ...(isLate ? [`recovery took more than ${recoveryMaxS} s`] : []),
    ...(isSlow ? [`less than ${ratioMin * 100} % of the rate before`] : []),
    ...(isUnsteady ? [`${steady.perSecond} jobs/s not reached within ${steady.withinS} s`] : []),
  ]
}

/** Jobs that had to end as failed, and did not. */
function unfailed({ struck: { failed = [] }, recorded, census }: Evidence): readonly string[] {
  if (failed.length === 0) return []
  const isFailed = (id: string): boolean =>
    recorded === undefined ? census.failed > 0 : recorded.some((one) => one.id === id && one.status === 'failed')
  return failed.every(isFailed) ? [] : ['the pill is not dead-lettered']
}
