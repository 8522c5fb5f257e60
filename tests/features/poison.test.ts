// Jobs that kill their process: forgiven, then alone, then a dead letter; their neighbours complete.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed, memory } from '../../src/index.ts'
import type { FailedInfo, RunContext } from '../../src/index.ts'
import { VirtualClock, startProcess } from './support.ts'
import type { Process } from './support.ts'

/** A host that starts a new process whenever the poison has killed the last one. */
async function host(options: { readonly attempts?: number; readonly neighbourMs?: number } = {}) {
  const clock = new VirtualClock()
  const backend = memory({ clock })
  const state = { crashes: 0, running: 0, besideOnThirdRun: -1, pending: false, life: 0 }
  const done = new Map<number, number>()
  const failed: FailedInfo[] = []
  const poison = defineJob({
    name: 'poison',
    queue: 'mixed',
    retry: fixed({ attempts: options.attempts ?? 5, delay: '1s' }),
    run: () => {
      state.crashes += 1
      if (state.crashes === 3) state.besideOnThirdRun = state.running
      state.pending = true
      return new Promise<never>(() => undefined)
    },
  })
  const neighbour = defineJob({
    name: 'neighbour',
    queue: 'mixed',
    // The same wait as the poison: after a crash they come back together.
    retry: fixed({ attempts: 5, delay: '1s' }),
    async run({ input }: RunContext<number>) {
      const { life } = state
      state.running += 1
      await new Promise<void>((resolve) => clock.timer(options.neighbourMs ?? 200, resolve))
      // Its process is gone, and so is whatever it would have done.
      if (life !== state.life) return
      state.running -= 1
      done.set(input, (done.get(input) ?? 0) + 1)
    },
  })
  const jobs = [poison, neighbour] as const
  // Watches and judges, and knows the policies of all kinds; it works on another queue.
  const idle = defineJob({ name: 'idle', queue: 'idle', run: () => 1 })
  const watcher = await startProcess(clock, backend, [...jobs, idle], { onFailed: (info) => void failed.push(info) })
  await watcher.mill.work({ queues: ['idle'] })
  let current: Process<typeof jobs> | undefined
  /** Runs until the condition holds; whoever runs the poison dies 300 ms later and is replaced. */
  async function runUntil(holds: () => boolean, limitMs: number): Promise<void> {
    const untilMs = clock.nowMs() + limitMs
    while (!holds() && clock.nowMs() < untilMs) {
      if (current === undefined) {
        current = await startProcess(clock, backend, jobs)
        await current.mill.work({ concurrency: 4 })
      }
      await clock.advance(100)
      if (!state.pending) continue
      state.pending = false
      await clock.advance(100)
      current.crash()
      state.life += 1
      state.running = 0
      current = undefined
    }
    expect(holds()).toBe(true)
  }
  return {
    clock,
    mill: watcher.mill,
    producer: await startProcess(clock, backend, jobs),
    poison,
    neighbour,
    state,
    done,
    failed,
    runUntil,
  }
}

describe('memory', () => {
  test('D8 the 1st crash is tried again, after the 2nd it runs alone, the 3rd makes it a dead letter', async () => {
    const { producer, poison, neighbour, state, done, failed, runUntil } = await host()
    const { mill } = producer
    const bad = await mill.enqueue(poison, undefined, { priority: 10 })
    await mill.enqueueMany(Array.from({ length: 40 }, (_, index) => [neighbour, index] as const))
    await runUntil(() => done.size === 40 && state.crashes === 3 && failed.length > 0, 300_000)
    const letter = await mill.deadLetters.get(bad)
    expect(letter).toMatchObject({ status: 'failed', crashCount: 3, lastError: { code: 'POISON', class: 'crash' } })
    expect(letter!.attempts).toMatchObject([{ status: 'expired' }, { status: 'expired' }, { note: 'poison' }])
    expect(state.besideOnThirdRun).toBe(0)
    expect(failed.map(({ id, error }) => [id, error.code])).toEqual([[bad.id, 'POISON']])
  })

  test('D8 no neighbour is dead-lettered and none is left behind', async () => {
    const { producer, poison, neighbour, state, done, failed, runUntil } = await host({ neighbourMs: 1_000 })
    const { mill } = producer
    await mill.enqueue(poison, undefined, { priority: 10 })
    await mill.enqueueMany(Array.from({ length: 12 }, (_, index) => [neighbour, index] as const))
    await runUntil(() => done.size + failed.length === 13 && state.crashes >= 3, 600_000)
    expect((await mill.deadLetters.list()).items.map(({ name }) => name)).toEqual(['poison'])
    const [counts] = await mill.jobs.counts('mixed')
    expect(counts!.counts).toMatchObject({ completed: 12, failed: 1, running: 0, queued: 0, scheduled: 0 })
  })

  test('D8 a replayed poison job is judged afresh', async () => {
    const { producer, poison, state, failed, runUntil } = await host()
    const { mill } = producer
    const bad = await mill.enqueue(poison)
    await runUntil(() => failed.length === 1, 300_000)
    await mill.deadLetters.replay(bad)
    expect(await mill.jobs.get(bad)).toMatchObject({ attemptCount: 0, crashCount: 0 })
    await runUntil(() => failed.length === 2, 300_000)
    expect(state.crashes).toBe(6)
  })

  test('D8 a job whose attempts are used up by crashes fails earlier', async () => {
    const { producer, poison, state, failed, runUntil } = await host({ attempts: 2 })
    const bad = await producer.mill.enqueue(poison)
    await runUntil(() => failed.length === 1, 300_000)
    expect(state.crashes).toBe(2)
    expect(await producer.mill.jobs.get(bad)).toMatchObject({
      status: 'failed',
      attemptCount: 2,
      lastError: { code: 'WORKER_DIED' },
    })
  })

  test('D8 a job that runs alone has the whole process for itself, also that of another connection', async () => {
    const clock = new VirtualClock()
    const connections = { default: memory({ clock }), eu: memory({ clock }) }
    const state = { runs: 0, beside: -1, filling: 0, started: false }
    const poison = defineJob({
      name: 'poison',
      queue: 'bad',
      retry: fixed({ attempts: 5, delay: 0 }),
      run: () => {
        state.runs += 1
        state.started = true
        if (state.runs < 3) return new Promise<never>(() => undefined)
        state.beside = state.filling
        return new Promise<void>((resolve) => clock.timer(500, resolve))
      },
    })
    const filler = defineJob({
      name: 'filler',
      queue: 'good',
      connection: 'eu',
      async run() {
        state.filling += 1
        await new Promise<void>((resolve) => clock.timer(200, resolve))
        state.filling -= 1
        if (state.runs === 3 && state.beside >= 0) state.beside = Math.max(state.beside, state.filling)
      },
    })
    const jobs = [poison, filler] as const
    const producer = await startProcess(clock, connections.default, jobs, { connections })
    const bad = await producer.mill.enqueue(poison)
    for (let life = 0; life < 2; life++) {
      state.started = false
      // Given through wrapped connections, so that a crash silences both.
      const dying = await startProcess(clock, connections.default, [poison])
      await dying.mill.work()
      await clock.until(() => state.started)
      dying.crash()
    }
    await producer.mill.enqueueMany(Array.from({ length: 2_000 }, () => [filler] as const))
    await producer.mill.work({ concurrency: 4 })
    // The fillers last for 100 s; it must not have to wait for their end.
    await clock.during(bad.result(), 40_000)
    expect(state.beside).toBe(0)
  })

  test('D8 between two crashes a job waits as the policy of its queue says', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const starts: number[] = []
    const queues = { bad: { attempts: 9, retry: fixed({ delay: '2m' }) } }
    const poison = defineJob({
      name: 'poison',
      queue: 'bad',
      run: () => {
        starts.push(clock.nowMs())
        return new Promise<never>(() => undefined)
      },
    })
    for (let life = 1; life <= 3; life++) {
      const dying = await startProcess(clock, backend, [poison], { queues })
      if (life === 1) await dying.mill.enqueue(poison)
      await dying.mill.work()
      await clock.until(() => starts.length === life, 600_000)
      dying.crash()
    }
    expect(starts[1]! - starts[0]!).toBeLessThan(15_000)
    expect(starts[2]! - starts[1]!).toBeGreaterThan(120_000)
  })
})
