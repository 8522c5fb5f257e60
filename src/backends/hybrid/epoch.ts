// Epochs: who flips which queue, when. A flip is one statement in PostgreSQL; the flipper alone opens its epoch in Redis and
// then stores the birth. An epoch that stays without one is flipped again, by anyone; nobody opens an epoch of another,
// since one that is opened again after a loss looks empty and whole.
//
// | seen | who flips what |
// |---|---|
// | EPOCH or TORN, the epoch is current in PostgreSQL, on the Redis it was opened on | anyone, that queue, at once |
// | IDENTITY, or EPOCH on another Redis | anyone, all queues that have left that Redis, if no live session that serves them is healthy |
// | a breaker is open | that worker, to mode ledger, same condition; again and again, at last once a second |
// | mode ledger, and Redis answers | a worker, to mode token |
// | another server behind PostgreSQL | anyone, all queues (`renewServer`) |
import type { Runtime } from '../../runtime/runtime.ts'
import type { RaceCalls } from './calls.ts'
import type { DispatchView } from './dispatch-view.ts'
import type { DispatchNews, DispatchRow, EpochTag, FlipRequest, GateRefusal, Ledger } from './ports.ts'

export interface EpochsOptions {
  readonly runtime: Runtime
  readonly ledger: Ledger
  readonly calls: RaceCalls
  readonly view: DispatchView
  /** The sessions of this process have something to see in PostgreSQL. */
  readonly onNews: () => void
  /** Rows were read in one snapshot with the counter. */
  readonly onRead: (news: DispatchNews) => void
  /** This process cannot use the Redis of these queues as it is: its sessions have to say so. */
  readonly onUnusable: (queues: readonly string[]) => void
}

const OPEN_TRIES = 3
const NO_ROW = { epoch: 0, redisId: '' } as const

export class Epochs {
  readonly #options: EpochsOptions
  readonly #busy = new Set<string>()

  constructor(options: EpochsOptions) {
    this.#options = options
  }

  /** A script said that this epoch is not, or not wholly, what is there. Never throws. */
  refused(queue: string, tag: EpochTag, refusal: GateRefusal): void {
    if (this.#options.view.tag(queue) !== tag) return
    this.#alone(queue, () => this.#resolve(queue, tag, refusal))
  }

  /** To mode token: an epoch that is new, was left without a birth, or comes back. Never throws. */
  openTokens(queue: string): void {
    this.#alone(queue, async () => {
      const { calls, view } = this.#options
      const { redisId } = await calls.probe(queue, null, () => Promise.resolve())
      const { epoch: expected } = view.row(queue) ?? NO_ROW
      await this.#flip({ queues: [{ queue, expected }], mode: 'token', redisId, unlessHealthy: false })
    })
  }

  /** To mode ledger, unless somebody can work with this Redis. Never throws. */
  closeTokens(queue: string): void {
    this.#alone(queue, async () => {
      const row = this.#options.view.row(queue)
      if (row?.mode !== 'token') return
      const { epoch: expected, redisId } = row
      await this.#flip({ queues: [{ queue, expected }], mode: 'ledger', redisId, unlessHealthy: true })
    })
  }

  /** To another Redis, unless somebody can work with the one of this epoch. Never throws. */
  moveTokens(queue: string, redisId: string): void {
    this.#alone(queue, () => this.#move(queue, redisId))
  }

  /** Reads the rows again: somebody else may have flipped. */
  async refresh(queues?: readonly string[]): Promise<void> {
    const { ledger, view, onNews, onRead } = this.#options
    const news = await ledger.dispatch(queues)
    view.learn(news)
    onRead(news)
    if (news.serverChanged) {
      await ledger.renewServer()
      view.learn(await ledger.dispatch())
      onNews()
    }
  }

  /** One at a time per queue: whoever comes meanwhile sees what becomes of it. */
  #alone(queue: string, act: () => Promise<void>): void {
    if (this.#busy.has(queue)) return
    this.#busy.add(queue)
    void act()
      .catch((error: unknown) =>
        this.#options.runtime.logger.warn({ queue, error }, 'an epoch could not be changed yet'),
      )
      .finally(() => this.#busy.delete(queue))
  }

  async #resolve(queue: string, tag: EpochTag, { why, redisId }: GateRefusal): Promise<void> {
    const { view, onNews } = this.#options
    await this.refresh([queue])
    const row = view.row(queue)
    if (view.tag(queue) !== tag || row === undefined) {
      onNews()
      return
    }
    if (why !== 'IDENTITY' && redisId === row.redisId) {
      await this.#flip({ queues: [{ queue, expected: row.epoch }], mode: 'token', redisId, unlessHealthy: false })
      return
    }
    await this.#move(queue, redisId)
  }

  async #move(queue: string, redisId: string): Promise<void> {
    const { view, onUnusable } = this.#options
    const row = view.row(queue)
    if (row?.mode !== 'token' || row.redisId === redisId) return
    // Those that are served elsewhere too: as a rule it is the same Redis that went away.
    const rows = [...view.rows()].filter((one) => one.mode === 'token' && one.redisId === row.redisId)
    const moved = new Map([[redisId, [row]]])
    for (const [at, there] of (await this.#whoHas(rows)).entries()) {
      const one = rows[at]!
      if (there === null || there === row.redisId || one.queue === queue) continue
      moved.set(there, [...(moved.get(there) ?? []), one])
    }
    onUnusable([...moved.values()].flat().map((one) => one.queue))
    for (const [to, those] of moved) {
      const queues = those.map((one) => ({ queue: one.queue, expected: one.epoch }))
      await this.#flip({ queues, mode: 'token', redisId: to, unlessHealthy: true })
    }
  }

  /** In a Cluster a single slot may have moved, and the others have not. Null: not known. */
  #whoHas(rows: readonly DispatchRow[]): Promise<readonly (string | null)[]> {
    const { calls } = this.#options
    return Promise.all(rows.map(({ queue }) => calls.plain(queue, (race) => race.identity(queue)).catch(() => null)))
  }

  async #flip(request: FlipRequest, triesLeft = OPEN_TRIES): Promise<void> {
    const { runtime, ledger, view, onNews } = this.#options
    const rows = await ledger.flip(request)
    if (rows.length > 0) runtime.failpoint('hybrid.after-flip')
    for (const row of rows) {
      view.learnRow(row)
      if (row.mode === 'token') await this.#open(row, triesLeft)
    }
    // Those that are not ours were flipped by somebody else, or not at all.
    if (rows.length < request.queues.length) await this.refresh(request.queues.map(({ queue }) => queue))
    onNews()
  }

  async #open(row: DispatchRow, triesLeft: number): Promise<void> {
    const { runtime, ledger, calls, view } = this.#options
    const { queue, epoch, redisId, firstLease, paused, configVersion: version, lowerLaneShare } = row
    const request = { epoch, redisId, firstLease, paused, version, lowerLaneShare }
    const reply = await calls.plain(queue, (race) => race.open(queue, request))
    runtime.failpoint('hybrid.after-open')
    if (reply.kind === 'open') {
      const { birth } = reply
      if (await ledger.born(queue, epoch, birth)) view.learnRow({ ...row, birth })
      return
    }
    if (triesLeft <= 0) return
    const next = reply.kind === 'ahead' ? { redisId, above: reply.epoch } : { redisId: reply.redisId }
    const again = { queues: [{ queue, expected: epoch }], mode: 'token', unlessHealthy: false, ...next } as const
    await this.#flip(again, triesLeft - 1)
  }
}
