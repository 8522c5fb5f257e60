// One cell: load, fault, load again, drain, verdict.
import { unfinished } from './checks/delivery.ts'
import type { Cell } from './cell.ts'
import { judge } from './judge.ts'
import { wait } from './scenario.ts'
import type { Scenario, Times } from './scenario.ts'
import type { Servers } from './servers.ts'
import { openStage } from './stage.ts'
import type { Stage } from './stage.ts'
import type { Program } from './start-process.ts'
import type { Backend, Census, ChaosSystem, Place } from './system.ts'
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

const RATE_PER_S = 300
/** Everything that is lost comes back within a ttl and a few looks; then the backlog has to run. */
const DRAIN_MAX_MS = 60_000
/** Peers are not waited for: what is only waiting for a time-out is told as stuck. */
const PEER_DRAIN_MAX_MS = 20_000
const LOOK_MS = 250

export async function play({ servers, program, system, backend, scenario, times }: PlayOptions): Promise<Cell> {
  const beganMs = performance.now()
  const place = await servers.freshPlace(backend)
  const ttlMs = scenario.ttl === 'default' && !times.isAlwaysShort ? undefined : times.ttlMs
  const ratePerS = scenario.ratePerS ?? RATE_PER_S
  const load = { ratePerS, ...(ttlMs !== undefined && { ttlMs }) }
  const stage = await openStage({ system, servers, program, place, load })
  const isOurs = system.name === OURS
  try {
    const goThroughRedis = backend === 'hybrid' && ratePerS > 0
    const fromMs = Date.now()
    if (ratePerS > 0) await wait(times.phaseMs)
    if (goThroughRedis) await flowsThroughRedis(stage)
    const struck = await scenario.strike(stage, times)
    try {
      if (ratePerS > 0) await wait(times.phaseMs)
      if (goThroughRedis) await flowsThroughRedis(stage)
      const toMs = Date.now()
      for (const { hasQuit, lastWords } of [...stage.workers, ...stage.producers]) {
        if (hasQuit && ratePerS > 0) process.stderr.write(`a process ended by itself:\n${lastWords}\n`)
      }
      const quits = [...stage.workers, ...stage.producers].flatMap(({ hasQuit, pid }) => (hasQuit ? [pid] : []))
      await Promise.all(stage.producers.map((producer) => producer.stop()))
      const census = await drain(stage, struck.place ?? place, isOurs, struck.failed)
      return judge({
        scenario,
        system: system.name,
        backend,
        isOurs,
        books: stage.books(),
        recorded: await system.record?.(struck.place ?? place),
        census,
        struck,
        workers: stage.workers.map(({ pid }) => pid),
        ttlMs,
        ratePerS,
        load: { fromMs, toMs },
        refused: stage.producers.reduce((sum, { refused }) => sum + refused.length, 0),
        quits,
        seconds: Math.round((performance.now() - beganMs) / 1000),
      })
    } finally {
      await struck.close?.()
    }
  } finally {
    await stage.close()
  }
}

/** Until nothing waits or runs, or the time is over. Where every worker has ended there is a new one. */
async function drain(stage: Stage, place: Place, isOurs: boolean, failed: readonly string[] = []): Promise<Census> {
  const { system } = stage
  if (!stage.workers.some(({ isAlive }) => isAlive)) await stage.startWorker()
  const deadlineMs = performance.now() + (isOurs ? DRAIN_MAX_MS : PEER_DRAIN_MAX_MS)
  for (;;) {
    if (unfinished(stage.books()).every((id) => failed.includes(id)) || performance.now() > deadlineMs) {
      const census = await system.inspect(place)
      if (census.waiting + census.running === 0 || performance.now() > deadlineMs) return census
    }
    await wait(LOOK_MS)
  }
}
