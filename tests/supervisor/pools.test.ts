// Pools on virtual time: restarts, recycling, rolling, scaling, health, and the plan of the autoscaler.
import { describe, expect, test } from 'vitest'
import type { WorkerId } from '../../src/core/job.ts'
import type { ToChild } from '../../src/supervisor/messages.ts'
import { PLAN_SPACE } from '../../src/supervisor/scaling-plan.ts'
import { fakeSupervisor } from './fake.ts'

const MB = 1024 * 1024

function isDrain(message: ToChild | undefined, deadlineMs: number): boolean {
  return message?.kind === 'drain' && message.deadlineMs === deadlineMs
}

describe('pools', () => {
  test('P1 a pool starts with the least and is kept at its size', async () => {
    const { supervisor, pass, living } = await fakeSupervisor()
    await supervisor.start()
    await pass(1_000)
    expect(supervisor.status().pools[0]).toMatchObject({ wanted: 2, min: 2, max: 6, state: 'ok' })
    expect(supervisor.status().pools[0]!.children.map(({ state, pid }) => [state, pid])).toEqual([
      ['running', 1_000],
      ['running', 1_001],
    ])
    living()[0]!.die()
    expect(living()).toHaveLength(2)
    await pass(500)
    expect(supervisor.status().pools[0]!.children.every(({ state }) => state === 'running')).toBe(true)
  })

  test('P1 the store is told of a dead process at once, by the lives that it had named', async () => {
    const { supervisor, pass, living, backend } = await fakeSupervisor()
    await supervisor.start()
    await pass(1_000)
    const [first, second] = living()
    for (const { workerId } of [first!, second!]) {
      const worker = { host: 'web1', pid: 1, queues: ['mail'], concurrency: 1 }
      await backend.workers.register({ id: workerId as WorkerId, ...worker })
    }
    first!.die()
    await pass(10)
    const states = (await backend.workers.list()).map(({ id, state }) => [id, state])
    expect(states).toEqual([
      [first!.workerId, 'dead'],
      [second!.workerId, 'alive'],
    ])
  })

  test('P1 a crash loop backs off, is reported once, and is over when a process stays', async () => {
    const { supervisor, clock, processes, living } = await fakeSupervisor({
      pools: { mail: { processes: 1 } },
      willing: false,
    })
    const told: string[] = []
    supervisor.on('crash-loop', ({ pool, shortLives }) => told.push(`${pool} ${shortLives}`))
    supervisor.on('crash-loop-over', ({ pool }) => told.push(`${pool} over`))
    await supervisor.start()
    const startedMs: number[] = []
    for (let no = 0; no < 8; no++) {
      startedMs.push(clock.monoMs())
      living()[0]!.exit({ code: 1 })
      while (living().length === 0) await clock.advance(500)
    }
    const waits = startedMs.slice(1).map((ms, index) => ms - startedMs[index]!)
    expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000])
    expect(told).toEqual(['mail 5'])
    expect(supervisor.status().pools[0]!.state).toBe('crash-loop')
    living()[0]!.ready()
    for (let second = 0; second < 11; second++) {
      living()[0]!.stats()
      await clock.advance(1_000)
    }
    expect(told).toEqual(['mail 5', 'mail over'])
    expect(supervisor.status().pools[0]!.state).toBe('ok')
    expect(processes).toHaveLength(9)
  })

  test('P1 successors that do not start are tried at longer and longer intervals, and are one crash loop until one works', async () => {
    const { supervisor, pass, processes, clock, launching } = await fakeSupervisor({
      pools: { mail: { processes: 1, maxAge: '20s' } },
    })
    const told: string[] = []
    supervisor.on('crash-loop', ({ pool }) => told.push(pool))
    supervisor.on('crash-loop-over', ({ pool }) => told.push(`${pool} over`))
    await supervisor.start()
    await pass(16_000)
    launching.isWilling = false
    const beganMs = clock.monoMs()
    for (let second = 0; second < 240; second++) {
      for (const process of processes.slice(1)) process.exit({ code: 1 })
      await pass(500)
    }
    const tries = processes.length - 1
    expect([tries, clock.monoMs() - beganMs], 'at once, then after 1, 2, 4 … 60 s').toEqual([8, 120_000])
    expect(processes[0]!.isGone, 'the old one works on').toBe(false)
    expect(told).toEqual(['mail'])
    expect(supervisor.status().pools[0]!.state).toBe('crash-loop')
    launching.isWilling = true
    await pass(65_000)
    expect(processes[0]!.kinds).toContain('drain')
    expect(told).toEqual(['mail', 'mail over'])
  })

  test('P1 a process over its memory drains first, and its place is filled when it has gone', async () => {
    const { supervisor, pass, living, processes, clock } = await fakeSupervisor({
      pools: { mail: { processes: 2, memoryMb: 100 } },
    })
    await supervisor.start()
    await pass(12_000)
    const [leaky, other] = living()
    leaky!.stats({ rssBytes: 101 * MB })
    other!.stats({ rssBytes: 102 * MB })
    await clock.advance(1_000)
    expect(leaky!.kinds).toContain('drain')
    expect(other!.kinds, 'the others must carry its work').not.toContain('drain')
    expect(processes).toHaveLength(2)
    leaky!.exit()
    expect(processes).toHaveLength(3)
  })

  test('P1 max jobs and max age: the successor works before the old one drains, and patiently', async () => {
    const { supervisor, pass, processes, clock } = await fakeSupervisor({
      pools: { mail: { processes: 1, maxJobs: 10, maxAge: '1h' } },
    })
    await supervisor.start()
    await pass(1_000)
    processes[0]!.stats({ processed: 10 })
    await clock.advance(1_050)
    expect(processes).toHaveLength(2)
    expect(processes[0]!.kinds).not.toContain('drain')
    await clock.advance(100)
    expect(processes[0]!.told.at(-1)).toEqual({ kind: 'drain', deadlineMs: null })
    processes[0]!.exit()
    await pass(57 * 60_000)
    expect(processes, 'between four fifths of an hour and an hour old').toHaveLength(3)
  })

  test('P1 a rolling restart replaces one after the other, and stops when new ones do not start', async () => {
    const { supervisor, pass, processes, living, clock } = await fakeSupervisor({ pools: { mail: { processes: 3 } } })
    await supervisor.start()
    await pass(1_000)
    const rolling = supervisor.restart()
    const seen: number[] = []
    for (let no = 0; no < 3; no++) {
      await clock.advance(150)
      seen.push(living().filter(({ kinds }) => kinds.includes('begin') && !kinds.includes('drain')).length)
      processes[no]!.exit()
    }
    expect(await rolling).toBe(3)
    expect(seen).toEqual([3, 3, 3])
    expect(living().map(({ pid }) => pid)).toEqual([1_003, 1_004, 1_005])

    const failing = supervisor.restart()
    await clock.advance(50)
    processes[6]!.exit({ code: 1 })
    await expect(failing).rejects.toThrow('did not begin to work; 0 of 3 were replaced')
    expect(
      living().map(({ pid }) => pid),
      'the old ones stay',
    ).toEqual([1_003, 1_004, 1_005])
  })

  test('P1 a rolling restart does not wait for those who drain for other reasons', async () => {
    const { supervisor, pass, processes, clock } = await fakeSupervisor({
      pools: { mail: { processes: { min: 1, max: 3 } } },
    })
    await supervisor.start()
    supervisor.scale('mail', 3)
    await pass(1_000)
    supervisor.scale('mail', 2)
    expect(processes.filter(({ kinds }) => kinds.includes('drain'))).toHaveLength(1)
    const rolling = supervisor.restart()
    for (let no = 0; no < 2; no++) {
      await clock.advance(150)
      const old = processes.slice(0, 3).find(({ isGone, told }) => !isGone && isDrain(told.at(-1), 58_000))
      old?.exit()
    }
    expect(await rolling).toBe(2)
  })

  test('P1 a supervisor that was suspended itself blames nobody for it, nor those who were about to start', async () => {
    const { supervisor, pass, processes, living, clock, launching, suspend } = await fakeSupervisor()
    await supervisor.start()
    await pass(1_000)
    launching.isWilling = false
    supervisor.scale('mail', 3)
    suspend(120_000)
    await clock.advance(1_000)
    expect(processes.flatMap(({ signals }) => signals)).toEqual([])
    expect(living()).toHaveLength(3)
  })

  test('P1 a silent process is unhealthy, then ended and replaced', async () => {
    const { supervisor, pass, living, processes, clock } = await fakeSupervisor({ pools: { mail: { processes: 1 } } })
    await supervisor.start()
    await pass(1_000)
    const [silent] = living()
    const state = () => supervisor.status().pools[0]!.children[0]!.state
    for (let second = 0; second < 17; second++) await clock.advance(1_000)
    expect(state()).toBe('unhealthy')
    silent!.stats()
    await clock.advance(1_000)
    expect(state()).toBe('running')
    for (let second = 0; second < 62; second++) await clock.advance(1_000)
    expect(silent!.signals).toEqual(['SIGTERM'])
    for (let second = 0; second < 6; second++) await clock.advance(1_000)
    expect(silent!.signals).toEqual(['SIGTERM', 'SIGKILL'])
    expect(processes).toHaveLength(2)
  })

  test('P1 scaling up starts at once, scaling down lets the least busy finish, and the supervisor has a bound', async () => {
    const { supervisor, pass, living, processes } = await fakeSupervisor({
      pools: { mail: { processes: { min: 1, max: 4 } }, rest: { processes: 1 } },
      processesMax: 5,
    })
    await supervisor.start()
    supervisor.scale('mail', 4)
    expect(living()).toHaveLength(5)
    await pass(1_000)
    for (const [index, process] of processes.entries()) process.stats({ running: index === 3 ? 0 : 5 })
    supervisor.scale('mail', 3)
    expect(processes.map(({ kinds }) => kinds.includes('drain'))).toEqual([false, false, false, true, false])
    expect(processes[3]!.told.at(-1)).toEqual({ kind: 'drain', deadlineMs: null })
    expect(supervisor.status().pools[0]).toMatchObject({ wanted: 3, pinned: true })
    expect(() => supervisor.scale('mail', 5)).toThrow('a whole number from 0 to 4')
    expect(() => supervisor.scale('rest', 3)).toThrow('a whole number from 0 to 2')
    expect(supervisor.status().pools[1], 'what is refused changes nothing').toMatchObject({ wanted: 1, pinned: false })
    expect(() => supervisor.scale('post', 5)).toThrow('there is no pool "post" here; there are: mail, rest')
  })

  test('P1 the plan is followed within the bounds of the pool, unless it is stale, for others, or a person said otherwise', async () => {
    const { supervisor, pass, backend, clock } = await fakeSupervisor()
    const plan = async (shares: Record<string, number>): Promise<void> => {
      const value = JSON.stringify({ pool: 'mail', total: 9, shares, reasons: ['queue'], decidedAtMs: clock.nowMs() })
      await backend.notes.put({ space: PLAN_SPACE, key: 'mail', value })
    }
    const wanted = () => supervisor.status().pools[0]!.wanted
    await supervisor.start()
    await plan({ web1: 4 })
    await pass(3_000)
    expect(wanted()).toBe(4)
    await plan({ web1: 99 })
    await pass(3_000)
    expect(wanted()).toBe(6)
    await plan({ web2: 1 })
    await pass(3_000)
    expect(wanted()).toBe(6)
    await plan({ web1: 3 })
    await pass(3_000)
    supervisor.scale('mail', 5)
    await plan({ web1: 2 })
    await pass(3_000)
    expect(wanted()).toBe(5)
    supervisor.scale('mail', null)
    await pass(3_000)
    expect(wanted()).toBe(2)
    await pass(61_000)
    await backend.notes.put({ space: PLAN_SPACE, key: 'mail', value: 'null' })
    await pass(3_000)
    expect(wanted()).toBe(2)
  })

  test('P1 a size by hand is given up with `auto`, also where nobody plans', async () => {
    const { supervisor, pass } = await fakeSupervisor({
      pools: { fixed: { processes: 2 }, range: { processes: { min: 1, max: 3 } } },
    })
    const sizes = () => supervisor.status().pools.map(({ wanted }) => wanted)
    await supervisor.start()
    supervisor.scale('fixed', 5)
    supervisor.scale('range', 0)
    expect(sizes()).toEqual([5, 0])
    supervisor.scale('fixed', null)
    supervisor.scale('range', null)
    await pass(5_000)
    expect(sizes()).toEqual([2, 1])
  })

  test('P1 orders say what the pool says; queues and runs that ended are told by the processes', async () => {
    const { supervisor, pass, living, clock } = await fakeSupervisor({
      pools: { mail: { processes: 2, concurrency: 3, timeout: '1m', attempts: 2 } },
    })
    await supervisor.start()
    await pass(1_000)
    const [first, second] = living()
    expect(first!.told[0]).toMatchObject({
      kind: 'begin',
      orders: { queues: null, concurrency: 3, timeoutMs: 60_000, attempts: 2 },
    })
    first!.ready(['b', 'a'])
    first!.stats({ processed: 5, ended: { a: 3, b: 2 } })
    second!.stats({ processed: 1, ended: { b: 1 } })
    const pool = () => supervisor.status().pools[0]!
    expect(pool()).toMatchObject({ queues: ['a', 'b'], ended: { a: 3, b: 3 } })
    first!.die()
    await clock.advance(10)
    expect(pool().ended, 'it does not fall').toEqual({ a: 3, b: 3 })
  })

  test('P1 a plan of yesterday is not followed', async () => {
    const { supervisor, pass, backend, clock } = await fakeSupervisor()
    const value = JSON.stringify({
      pool: 'mail',
      total: 5,
      shares: { web1: 5 },
      reasons: [],
      decidedAtMs: clock.nowMs(),
    })
    await backend.notes.put({ space: PLAN_SPACE, key: 'mail', value })
    await clock.advance(61_000)
    await supervisor.start()
    await pass(5_000)
    expect(supervisor.status().pools[0]!.wanted).toBe(2)
  })

  test('P1 quiet holds also for those who come later', async () => {
    const { supervisor, pass, living } = await fakeSupervisor()
    await supervisor.start()
    await pass(1_000)
    supervisor.quiet()
    expect(supervisor.status()).toMatchObject({ state: 'quiet' })
    living()[0]!.die()
    await pass(500)
    expect(living().at(-1)!.told[0]).toMatchObject({ kind: 'begin', orders: { isQuiet: true } })
    supervisor.resume()
    expect(living().map(({ kinds }) => kinds.at(-1))).toEqual(['resume', 'resume'])
    supervisor.quiet({ child: 'web1/mail-2' })
    expect(living().map(({ kinds }) => kinds.at(-1))).toEqual(['quiet', 'resume'])
    expect(() => supervisor.quiet({ child: 'web1/mail-99' })).toThrow('there is no worker process')
  })

  test('P1 a stop drains with its deadline and kills what is left; nothing is started meanwhile', async () => {
    const { supervisor, pass, living, processes, clock } = await fakeSupervisor({ drainMs: 5_000 })
    await supervisor.start()
    await pass(1_000)
    const stopping = supervisor.stop()
    await clock.advance(10)
    expect(processes.map(({ told }) => told.at(-1))).toEqual([
      { kind: 'drain', deadlineMs: 3_000 },
      { kind: 'drain', deadlineMs: 3_000 },
    ])
    processes[0]!.exit()
    await clock.advance(4_989)
    expect(living()).toHaveLength(1)
    await clock.advance(1_500)
    await stopping
    expect(processes[1]!.signals).toEqual(['SIGKILL'])
    expect(processes).toHaveLength(2)
    expect(() => supervisor.scale('mail', 1)).toThrow('this supervisor is stopping')
  })

  test('P1 services start before the processes and stop after them; one that does not start stops everything', async () => {
    const { supervisor, pass, living, processes } = await fakeSupervisor()
    const steps: string[] = []
    const service = (name: string) => ({
      start: () => Promise.resolve(void steps.push(`${name} starts with ${living().length}`)),
      stop: () => Promise.resolve(void steps.push(`${name} stops with ${living().length}`)),
    })
    await supervisor.start([service('a'), service('b')])
    await pass(1_000)
    const stopping = supervisor.stop()
    for (const process of living()) process.exit()
    await stopping
    expect(steps).toEqual(['a starts with 0', 'b starts with 0', 'b stops with 0', 'a stops with 0'])
    expect(processes).toHaveLength(2)

    const other = await fakeSupervisor()
    const refusing = { start: () => Promise.reject(new Error('the port is taken')), stop: () => Promise.resolve() }
    await expect(other.supervisor.start([service('c'), refusing])).rejects.toThrow('the port is taken')
    expect(steps.at(-1)).toBe('c stops with 0')
    expect(other.processes).toHaveLength(0)
  })
})
