// One cell: load, fault, load again, drain, verdict.
import { unfinished } from './checks/delivery.ts'
import { TAKES_MAX_MS, takesAfterMs } from './checks/idle.ts'
import { hasCaughtUp } from './checks/side.ts'
import type { Cell } from './cell.ts'
import { judge } from './judge.ts'
import type { OwnStores } from './own-stores.ts'
import { DRAIN_MAX_MS, wait } from './scenario.ts'
import type { Scenario, Times } from './scenario.ts'
import type { Servers } from './servers.ts'
import { openStage } from './stage.ts'
import type { Member, Stage } from './stage.ts'
import type { Program } from './start-process.ts'
import { awaitedOf } from './system.ts'
import type { Backend, Census, ChaosSystem, Place, SideFacts } from './system.ts'
import { OURS } from './systems/catalogue.ts'
import { flowsThroughRedis } from './through-redis.ts'

export interface PlayOptions {
  readonly servers: Servers
  readonly program: Program
  readonly system: ChaosSystem
  readonly backend: Backend
  readonly scenario: Scenario
  readonly times: Times
}

const LOOK_MS = 250
const RESTART_MS = 1_000
const QUIET_MS = 2_000
/** A new leader is there after a ttl of the lead, and catches up at once. */
const TICKS_MAX_MS = 20_000

export async function play({ servers, ...options }: PlayOptions): Promise<Cell> {
  const { connectionsMax } = options.scenario
  if (connectionsMax === undefined) return await playWith({ servers, ...options })
  const wide = await servers.wide(connectionsMax)
  try {
    return await playWith({ servers: wide, ...options })
  } finally {
    await wide.close()
  }
}

async function playWith(options: PlayOptions): Promise<Cell> {
  const usual = await options.servers.freshPlace(options.backend)
  const own = await options.scenario.stores?.(usual)
  try {
    return await playOn(own?.place ?? usual, own, options)
  } finally {
    await own?.close()
  }
}

async function playOn(place: Place, own: OwnStores | undefined, options: PlayOptions): Promise<Cell> {
  const { servers, program, system, backend, scenario, times } = options
  const beganMs = performance.now()
  const isDefault = scenario.ttl === 'long' || (scenario.ttl === 'default' && !times.isAlwaysShort)
  const ttlMs = isDefault ? undefined : times.ttlMs
  const ratePerS = scenario.ratePerS ?? times.ratePerS
  const crew = scenario.crew?.(times)
  const { longMs } = times
  const load = { ratePerS, longMs, ...(ttlMs !== undefined && { ttlMs }), ...(crew !== undefined && { crew }) }
  const stage = await openStage({ system, servers, program, place, own, load })
  const isOurs = system.name === OURS
  // Some end by design when their store is away, and count on somebody who starts them again.
  const isSupervised = !isOurs && ratePerS > 0
  const leaveWorkers = isSupervised ? supervise(stage.workers, stage.startWorker) : undefined
  const leaveProducers = isSupervised ? supervise(stage.producers, stage.startProducer) : undefined
  try {
    const goThroughRedis = backend === 'hybrid' && ratePerS > 0
    const fromMs = Date.now()
    if (ratePerS > 0) await wait(times.phaseMs)
    if (goThroughRedis) await flowsThroughRedis(stage)
    const struck = await scenario.strike(stage, times)
    try {
      if (ratePerS > 0) await wait(times.phaseMs)
      if (goThroughRedis) await flowsThroughRedis(stage)
      if (ratePerS > 0 && isOurs) await allTake(stage, struck.backMs)
      const toMs = Date.now()
      const alive = pidsOf(stage.workers.filter(({ isAlive }) => isAlive))
      await leaveProducers?.()
      const quitters = stage.producers.filter(({ hasQuit }) => hasQuit)
      await Promise.all(stage.producers.map((producer) => producer.stop()))
      const drainMaxMs = DRAIN_MAX_MS[scenario.ttl === undefined ? 'short' : 'default']
      const census = await drain(stage, drainMaxMs, struck.failed)
      const hasSide = ratePerS > 0 && scenario.mayLose?.[backend] === undefined
      const side = hasSide ? await settledSide(system, stage.place, toMs) : undefined
      // Workers may also end while the rest is drained.
      quitters.push(...stage.workers.filter(({ hasQuit }) => hasQuit))
      return judge({
        scenario,
        system: system.name,
        backend,
        isOurs,
        books: stage.books(),
        recorded: await system.record?.(stage.place),
        census,
        side,
        struck,
        workers: pidsOf(stage.workers),
        alive,
        ttlMs,
        ratePerS,
        isShort: times.isAlwaysShort === true,
        load: { fromMs, toMs },
        refused: stage.producers.reduce((sum, { refused }) => sum + refused.length, 0),
        quits: quitters.map(({ pid, lastWords }) => ({ pid, words: lastWords })),
        seconds: Math.round((performance.now() - beganMs) / 1000),
      })
    } finally {
      await struck.close?.()
    }
  } finally {
    await Promise.all([leaveWorkers?.(), leaveProducers?.()])
    await stage.close()
  }
}

/** Until every worker has begun a job since the fault, or had time enough for it: the load goes on so long. */
async function allTake(stage: Stage, backMs: number): Promise<void> {
  const isIdle = (): boolean => {
    const alive = pidsOf(stage.workers.filter(({ isAlive }) => isAlive))
    return takesAfterMs(stage.books(), alive, backMs).includes(Infinity)
  }
  while (Date.now() < backMs + TAKES_MAX_MS && isIdle()) await wait(LOOK_MS)
}

function pidsOf(members: readonly Member[]): readonly number[] {
  return members.map(({ pid }) => pid)
}

/** Until nothing waits or runs, or the time is over. Where every worker has ended there is a new one. */
async function drain(stage: Stage, maxMs: number, failed: readonly string[] = []): Promise<Census> {
  const { system, place } = stage
  if (!stage.workers.some(({ isAlive }) => isAlive)) await stage.startWorker()
  const deadlineMs = performance.now() + maxMs
  let ended = 0
  let changedMs = performance.now()
  for (;;) {
    const books = stage.books()
    const isDone = unfinished(books).every((id) => failed.includes(id))
    const nowMs = performance.now()
    if (books.runs.length !== ended) changedMs = nowMs
    ended = books.runs.length
    // A store that forgot some will never run them: the rest is over when nothing happens any more.
    if (isDone || nowMs - changedMs > QUIET_MS || nowMs > deadlineMs) {
      const census = await system.inspect(place)
      if (awaitedOf(system, census) === 0 || nowMs > deadlineMs) return census
    }
    await wait(LOOK_MS)
  }
}

/** When every tick that was due by the end of the load has had its turn, or the time is over. */
async function settledSide(system: ChaosSystem, place: Place, toMs: number): Promise<SideFacts | undefined> {
  const deadlineMs = performance.now() + TICKS_MAX_MS
  for (;;) {
    const facts = await system.sideFacts?.(place)
    if (facts === undefined || hasCaughtUp(facts, toMs) || performance.now() > deadlineMs) return facts
    await wait(LOOK_MS)
  }
}

/** Starts another for each that ended by itself. Answers how to stop that. */
function supervise(members: readonly Member[], start: () => Promise<Member>): () => Promise<void> {
  let replaced = 0
  let starting: Promise<void> | undefined
  const timer = setInterval(() => {
    if (starting !== undefined || members.filter(({ hasQuit }) => hasQuit).length <= replaced) return
    starting = start()
      .then(
        () => void (replaced += 1),
        () => undefined, // its store is still away
      )
      .finally(() => (starting = undefined))
  }, RESTART_MS)
  return async () => {
    clearInterval(timer)
    await starting
  }
}
