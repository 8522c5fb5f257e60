// The supervisor: pools of worker processes that are kept at their size, told what to do by signals, by commands from the
// store and by the plan of the autoscaler. It runs no jobs; it does run maintenance, which its children then do not.
//
// running ⇄ quiet → stopping. Whatever the store does, processes that live are left alone: without it there are no commands
// and no plan, and the sizes stay as they are.
import type { Command } from '../core/command.ts'
import { MillraceError } from '../core/errors.ts'
import { checkInteger, shown } from '../core/names.ts'
import { ownShare } from '../core/restart.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createLoop } from '../runtime/service.ts'
import type { Loop, Service } from '../runtime/service.ts'
import type { Backend } from '../store/ports.ts'
import { createPostbox } from './command-notes.ts'
import type { Postbox } from './command-notes.ts'
import type { Child } from './child.ts'
import { SupervisorHub } from './events.ts'
import type { SupervisorEventName, SupervisorListener } from './events.ts'
import { FLEET_PERIOD_MS, createFleet } from './fleet.ts'
import type { Fleet, SupervisorRecord } from './fleet.ts'
import type { Exit, Launch } from './launch.ts'
import type { ChildSource } from './messages.ts'
import { Obituaries } from './obituary.ts'
import { Pool } from './pool.ts'
import type { PoolSettings } from './pool-options.ts'
import { PlanReader } from './scaling-plan.ts'

export interface SupervisorParts {
  readonly runtime: Runtime
  readonly id: string
  readonly host: { readonly name: string; readonly pid: number }
  /** The first one keeps registry, commands and plan. */
  readonly backends: readonly [Backend, ...Backend[]]
  readonly pools: readonly PoolSettings[]
  readonly processesMax: number
  readonly healthCheckMs: number
  readonly drainMs: number
  readonly secret: string | undefined
  readonly source: ChildSource
  readonly launch: Launch
}

const LOOK_MS = 1_000
const COMMANDS_MS = 1_000
/** Longer than this between two looks: the supervisor itself was suspended or starved. */
const ASLEEP_MS = 5_000
/** For the last words to the store, when it does not answer. */
const FAREWELL_MS = 2_000
/** Jobs of processes that had to be killed: until somebody has given them to others. */
const RESCUE_MS = 1_000

export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #hub: SupervisorHub
  readonly #pools: readonly Pool[]
  readonly #fleet: Fleet
  readonly #postbox: Postbox
  readonly #plan: PlanReader
  readonly #obituaries: Obituaries
  readonly #loops: readonly Loop[]
  readonly #services: Service[] = []
  readonly #startedAtMs: number
  #state: 'idle' | 'running' | 'quiet' | 'stopping' = 'idle'
  #lookedMs = 0
  #killed = 0
  #isHasty = false
  #stopping: Promise<void> | undefined
  #resolveStopped: () => void = () => undefined
  /** Resolves when it has stopped, whoever asked for it. */
  readonly stopped = new Promise<void>((resolve) => (this.#resolveStopped = resolve))

  constructor(parts: SupervisorParts) {
    const { runtime, id, backends, secret, launch, source, healthCheckMs } = parts
    const [store] = backends
    this.#parts = parts
    this.#startedAtMs = runtime.clock.nowMs()
    this.#hub = new SupervisorHub(runtime.logger)
    this.#obituaries = new Obituaries(runtime, backends)
    this.#fleet = createFleet({ notes: store.notes, runtime })
    this.#plan = new PlanReader(store, runtime)
    const onGone = (child: Child, exit: Exit): void => this.#gone(child, exit)
    this.#pools = parts.pools.map(
      (settings) => new Pool({ runtime, hub: this.#hub, settings, source, launch, prefix: id, healthCheckMs, onGone }),
    )
    this.#postbox = createPostbox({
      store,
      runtime,
      supervisor: id,
      secret,
      obey: (command) => this.#obey(command),
      onEnd: ({ id: command, kind, by, outcome, reason }) =>
        this.#hub.emit('command', { id: command, kind, by, outcome, reason }),
    })
    const loop = (name: string, pass: () => Promise<number>, backoffMaxMs = 2_500): Loop =>
      createLoop({ name, runtime, pass, backoffMinMs: 500, backoffMaxMs, keepAlive: true })
    const registry = loop('registry of supervisors', () => this.#publish())
    for (const news of ['ready', 'exited', 'scaled'] as const) this.#hub.on(news, () => registry.wake())
    this.#loops = [
      loop('look at worker processes', () => Promise.resolve(this.#look())),
      registry,
      loop('commands to supervisors', () => this.#takeCommands()),
      loop('scaling plan', () => this.#followPlan()),
    ]
  }

  get id(): string {
    return this.#parts.id
  }

  get state(): SupervisorRecord['state'] {
    return this.#state === 'idle' ? 'running' : this.#state
  }

  on<Name extends SupervisorEventName>(name: Name, listener: SupervisorListener<Name>): () => void {
    return this.#hub.on(name, listener)
  }

  status(): SupervisorRecord {
    const { id, host } = this.#parts
    return {
      id,
      host: host.name,
      pid: host.pid,
      startedAtMs: this.#startedAtMs,
      state: this.state,
      processesMax: this.#parts.processesMax,
      pools: this.#pools.map((pool) => pool.status()),
      commandsRefused: this.#postbox.refused,
    }
  }

  /** The latest snapshot of each child that has sent one. */
  metrics(): readonly { readonly child: string; readonly pool: string; readonly metrics: unknown }[] {
    return this.#pools.flatMap((pool) =>
      pool.children.flatMap(({ id, stats }) =>
        stats.metrics === undefined ? [] : [{ child: id, pool: pool.name, metrics: stats.metrics }],
      ),
    )
  }

  /** Services are started first, in order, and stopped last: alerts should see also how the rest begins and ends. */
  async start(services: readonly Service[] = []): Promise<void> {
    if (this.#state !== 'idle') return
    this.#state = 'running'
    this.#lookedMs = this.#parts.runtime.clock.monoMs()
    try {
      for (const service of services) {
        this.#services.push(service)
        await service.start()
      }
    } catch (error) {
      await this.stop({ deadlineMs: 0 })
      throw error
    }
    if (this.state === 'stopping') return
    for (const pool of this.#pools) pool.setWanted(pool.settings.min)
    for (const loop of this.#loops) await loop.start()
  }

  quiet(target: { readonly pool?: string; readonly child?: string } = {}): void {
    this.#setQuiet(true, target)
  }

  resume(target: { readonly pool?: string; readonly child?: string } = {}): void {
    this.#setQuiet(false, target)
  }

  /** One process after the other, in each pool. Answers how many were replaced. */
  async restart(target: { readonly pool?: string; readonly child?: string } = {}): Promise<number> {
    this.#refuseIfStopping()
    const pools = this.#meant(target)
    const counts = await Promise.all(pools.map((pool) => pool.restart('restart', pool.settings.drainMs, target.child)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** By hand, which holds until somebody says `null`: then the plan of the autoscaler is followed again. */
  scale(name: string, processes: number | null, deadlineMs?: number): void {
    this.#refuseIfStopping()
    const pool = this.#pool(name)
    const room = this.#roomFor(pool)
    if (processes === null) {
      pool.isPinned = false
      this.#parts.runtime.logger.info({ pool: name }, 'the pool follows the autoscaler again')
      // Nobody plans a pool whose size is fixed, or any pool while there is no autoscaler.
      const { min, max } = pool.settings
      this.#resize(pool, Math.min(Math.max(pool.wanted, min), max, room), 'no longer by hand')
      return
    }
    const size = checkInteger(processes, `processes of pool ${name}`, 0, room)
    pool.isPinned = true
    this.#resize(pool, size, 'by hand', deadlineMs)
  }

  /** Ends one process for good; its pool is one smaller. */
  remove(child: string, deadlineMs?: number): void {
    this.#refuseIfStopping()
    const pool = this.#pools.find((one) => one.remove(child, deadlineMs ?? one.settings.drainMs))
    if (pool === undefined) throw unknown('worker process', child, this.#childIds())
    pool.isPinned = true
  }

  /** Processes take no new jobs and have until the deadline for those that run; then these are given back. */
  async stop({ deadlineMs = this.#parts.drainMs }: { readonly deadlineMs?: number } = {}): Promise<void> {
    if (this.#stopping === undefined) {
      this.#state = 'stopping'
      this.#parts.runtime.logger.info({ deadlineMs }, 'supervisor stops')
      this.#stopping = this.#stop(deadlineMs).finally(() => this.#resolveStopped())
    } else for (const pool of this.#pools) void pool.stop(deadlineMs)
    await this.#stopping
  }

  /** At once; what the processes ran is given to others. Resolves when the store has been told, or soon after. */
  async kill(): Promise<void> {
    this.#state = 'stopping'
    this.#isHasty = true
    for (const pool of this.#pools) pool.killAll('told to end at once')
    await bounded(this.#parts.runtime.clock, 2 * FAREWELL_MS, 'the end', this.stop({ deadlineMs: 0 })).catch(
      () => undefined,
    )
    this.#resolveStopped()
  }

  async #stop(deadlineMs: number): Promise<void> {
    const { runtime } = this.#parts
    const drained = this.#pools.map((pool) => pool.stop(deadlineMs))
    for (const loop of this.#loops) loop.wake()
    await Promise.all(drained)
    await Promise.all(this.#loops.map((loop) => loop.stop()))
    await this.#farewell()
    if (this.#killed > 0 && !this.#isHasty) {
      // Maintenance still runs here: whoever leads it has a moment to give their jobs to others.
      await new Promise<void>((resolve) => runtime.clock.timer(RESCUE_MS, resolve, { keepAlive: true }))
    }
    for (const service of this.#services.toReversed()) {
      await service.stop().catch((error: unknown) => runtime.logger.error({ error }, 'a service could not be stopped'))
    }
    runtime.logger.info({ killed: this.#killed }, 'supervisor stopped')
  }

  async #farewell(): Promise<void> {
    const { clock } = this.#parts.runtime
    const words = Promise.all([this.#obituaries.told(), this.#fleet.withdraw(this.id)])
    await bounded(clock, FAREWELL_MS, 'signing off', words).catch(() => undefined)
  }

  #gone(child: Child, { signal }: Exit): void {
    if (this.#state === 'stopping' && signal !== null) this.#killed += 1
    this.#obituaries.tell(child.stats.workerIds)
  }

  #look(): number {
    const nowMs = this.#parts.runtime.clock.monoMs()
    const wasAsleep = nowMs - this.#lookedMs > ASLEEP_MS
    this.#lookedMs = nowMs
    for (const pool of this.#pools) {
      if (wasAsleep) pool.forgiveSilence()
      pool.look()
    }
    return LOOK_MS
  }

  async #publish(): Promise<number> {
    await this.#fleet.publish(this.status())
    return FLEET_PERIOD_MS
  }

  async #takeCommands(): Promise<number> {
    return (await this.#postbox.empty()) > 0 ? 0 : COMMANDS_MS
  }

  async #followPlan(): Promise<number> {
    for (const pool of this.#pools) {
      const plan = await this.#plan.read(pool.name)
      const share = ownShare(plan, this.id, pool.settings)
      if (share === null || pool.isPinned || this.#state === 'stopping') continue
      this.#resize(pool, Math.min(share, this.#roomFor(pool)), plan?.reasons?.join('; ') ?? 'as planned')
    }
    return FLEET_PERIOD_MS
  }

  #resize(pool: Pool, to: number, reason: string, deadlineMs?: number): void {
    const from = pool.wanted
    if (from === to) return
    this.#parts.runtime.logger.info({ pool: pool.name, from, to, reason }, 'pool is scaled')
    pool.setWanted(to, deadlineMs ?? null)
    this.#hub.emit('scaled', { pool: pool.name, from, to, reason })
  }

  #roomFor(pool: Pool): number {
    const others = this.#pools.reduce((sum, other) => sum + (other === pool ? 0 : other.wanted), 0)
    return Math.max(0, this.#parts.processesMax - others)
  }

  #setQuiet(isQuiet: boolean, target: { readonly pool?: string; readonly child?: string }): void {
    this.#refuseIfStopping()
    const done = this.#meant(target).map((pool) => pool.setQuiet(isQuiet, target.child))
    if (target.child !== undefined && !done.includes(true)) {
      throw unknown('worker process', target.child, this.#childIds())
    }
    if (target.pool === undefined && target.child === undefined) this.#state = isQuiet ? 'quiet' : 'running'
    this.#parts.runtime.logger.info({ ...target }, isQuiet ? 'takes no new jobs' : 'takes new jobs again')
  }

  /** Answers what was done. */
  async #obey({ kind, args }: Command): Promise<string> {
    const { pool, child, processes = null, deadlineMs } = args
    const target = { ...(pool !== undefined && { pool }), ...(child !== undefined && { child }) }
    const what = child ?? (pool === undefined ? 'all' : `pool ${pool}`)
    switch (kind) {
      case 'quiet':
      case 'resume':
        this[kind](target)
        return `${what}: ${kind === 'quiet' ? 'takes no new jobs' : 'takes new jobs again'}`
      case 'restart':
        return `${what}: ${await this.restart(target)} restarted`
      case 'scale': {
        const from = this.#pool(pool ?? '').wanted
        this.scale(pool ?? '', processes)
        return processes === null ? `${what}: follows the autoscaler` : `${what}: ${from} to ${processes} processes`
      }
      case 'stop': {
        if (child !== undefined) {
          this.remove(child, deadlineMs)
          return `${child}: drains`
        }
        if (pool !== undefined) {
          this.scale(pool, 0, deadlineMs ?? this.#pool(pool).settings.drainMs)
          return `pool ${pool}: drains`
        }
        // It is answered first: afterwards there is nobody who could.
        const deadline = deadlineMs === undefined ? {} : { deadlineMs }
        this.#parts.runtime.clock.timer(0, () => void this.stop(deadline), { keepAlive: true })
        return 'all: drain, then the supervisor ends'
      }
    }
  }

  #meant({ pool, child }: { readonly pool?: string; readonly child?: string }): readonly Pool[] {
    if (pool !== undefined) return [this.#pool(pool)]
    if (child === undefined) return this.#pools
    const found = this.#pools.filter((one) => one.children.some(({ id }) => id === child))
    if (found.length === 0) throw unknown('worker process', child, this.#childIds())
    return found
  }

  #pool(name: string): Pool {
    const found = this.#pools.find((pool) => pool.name === name)
    if (found !== undefined) return found
    throw unknown(
      'pool',
      name,
      this.#pools.map((pool) => pool.name),
    )
  }

  #childIds(): readonly string[] {
    return this.#pools.flatMap((pool) => pool.children.map(({ id }) => id))
  }

  #refuseIfStopping(): void {
    if (this.#state === 'stopping') throw new MillraceError('STOPPED', 'this supervisor is stopping')
  }
}

function unknown(what: string, name: string, known: readonly string[]): MillraceError {
  return new MillraceError(
    'INVALID_OPTION',
    `there is no ${what} ${shown(name)} here; there are: ${known.join(', ') || 'none'}`,
  )
}
