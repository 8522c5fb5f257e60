// Lives of a worker under bad timing, each once found broken: beats, trust, suspects, starting and stopping.
import { describe, expect, test } from 'vitest'
import { decideExpiry } from '../../src/core/decide.ts'
import type { WorkerId } from '../../src/core/job.ts'
import { defineJob, fixed, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Backend } from '../../src/store/ports.ts'
import { readyTopic } from '../../src/store/wakeups.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import { Tally, VirtualClock, gate, setup, startProcess } from './support.ts'

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.timer(ms, resolve))
}

/** Two workers in turn claim the first job of the queue and die. */
async function crashTwice(backend: Backend, queue: string): Promise<void> {
  const retry = fixed({ delay: 0 })
  for (const name of ['first', 'second']) {
    const worker = `${name}-ghost` as WorkerId
    await backend.workers.register({ id: worker, host: 'gone', pid: 1, queues: [queue], concurrency: 1 })
    await backend.jobs.claim({ worker, claimNo: 1, queues: [queue], limit: 1 })
    await backend.workers.retire(worker)
    const due = await backend.jobs.due('expired', 10)
    await backend.jobs.apply(due.map(({ job }) => decideExpiry(job, { retry }, () => 0)))
    await backend.jobs.promote(10)
  }
}

/** The first life that registers is told to stop before its first beat. */
async function stoppedAtBirth() {
  const clock = new VirtualClock()
  const backend = memory({ clock })
  let commands = 1
  const eager: Backend = {
    ...backend,
    workers: {
      ...backend.workers,
      async register(worker) {
        await backend.workers.register(worker)
        if (commands-- > 0) await backend.workers.send(worker.id, { kind: 'stop' })
      },
    },
  }
  const job = defineJob({ name: 'job', run: () => 'ran' })
  const { mill, calls } = await startProcess(clock, eager, [job])
  const events: string[] = []
  for (const name of ['workerStarted', 'workerStopped'] as const) mill.on(name, () => events.push(name))
  return { clock, backend, mill, job, calls, events, starting: mill.work() }
}

describe('memory', () => {
  test('D8 two connections with a job each that must run alone get both done, one after the other', async () => {
    const clock = new VirtualClock()
    const stores = { default: memory({ clock }), other: memory({ clock }) }
    let slow = false
    const slowClaims = (backend: Backend, replyMs: number): Backend =>
      wrapBackend(backend, async (what, call) => {
        const value = await call()
        if (slow && what === 'jobs.claim') await pause(clock, replyMs)
        return value
      })
    const connections = { default: slowClaims(stores.default, 50), other: slowClaims(stores.other, 200) }
    const state = { running: 0, beside: 0 }
    const run = async ({ input }: RunContext<number>): Promise<void> => {
      state.beside = Math.max(state.beside, state.running)
      state.running += 1
      await pause(clock, input)
      state.running -= 1
    }
    const long = defineJob({ name: 'long', queue: 'here', run })
    const here = defineJob({ name: 'here', queue: 'here', attempts: 9, run })
    const there = defineJob({ name: 'there', queue: 'there', connection: 'other', attempts: 9, run })
    const { mill } = await startProcess(clock, stores.default, [long, here, there], { connections })
    const suspects = [await mill.enqueue(here, 10), await mill.enqueue(there, 10)]
    await crashTwice(stores.default, 'here')
    await crashTwice(stores.other, 'there')
    for (const handle of suspects)
      expect(await mill.jobs.get(handle)).toMatchObject({ status: 'queued', crashCount: 2 })
    await mill.enqueue(long, 500, { priority: 1 })
    slow = true
    await mill.work({ concurrency: 4 })
    for (const handle of suspects) await clock.during(handle.result(), 10_000)
    expect(state.beside).toBe(0)
  })

  test('D8 a job that must run alone waits for claims under way: what they bring is not held beside it', async () => {
    const clock = new VirtualClock()
    const stores = { default: memory({ clock }), other: memory({ clock }) }
    const slowOnce = (backend: Backend, replyMs: number): Backend => {
      let claims = 0
      return wrapBackend(backend, async (what, call) => {
        const value = await call()
        if (what === 'jobs.claim' && ++claims === 1) await pause(clock, replyMs)
        return value
      })
    }
    // Both have claimed when the suspect comes, and the neighbour is still on its way.
    const connections = { default: slowOnce(stores.default, 500), other: slowOnce(stores.other, 2_000) }
    const seen: string[] = []
    const suspect = defineJob({
      name: 'suspect',
      queue: 'here',
      attempts: 9,
      async run() {
        seen.push((await mill.jobs.get(neighbour))!.status)
        await pause(clock, 500)
        seen.push((await mill.jobs.get(neighbour))!.status)
      },
    })
    const good = defineJob({ name: 'good', queue: 'there', connection: 'other', run: () => 1 })
    const { mill } = await startProcess(clock, stores.default, [suspect, good], { connections })
    const handle = await mill.enqueue(suspect)
    await crashTwice(stores.default, 'here')
    const neighbour = await mill.enqueue(good)
    await mill.work({ concurrency: 4 })
    await clock.during(handle.result(), 10_000)
    expect(seen).toEqual(['queued', 'queued'])
    await clock.during(neighbour.result(), 10_000)
  })

  test('D3 trust that comes back in the same life is used at once: without hints a job starts within about 1 s', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const hintless: Backend = {
      ...backend,
      wakeups: {
        listen: (topics, onHint) =>
          backend.wakeups.listen(topics, (topic) => {
            if (topic !== readyTopic('default')) onHint(topic)
          }),
      },
    }
    const job = defineJob({ name: 'job', run: () => 1 })
    let [isDown, lastGoodMs] = [false, 0]
    const { mill } = await startProcess(clock, hintless, [job], {
      around: async (what, call) => {
        if (what !== 'workers.beat') return call()
        // Past the trust window of 8 s, short of the 9 s that end the life.
        if (isDown && clock.monoMs() < lastGoodMs + 8_450)
          throw Object.assign(new Error('down'), { code: 'ECONNRESET' })
        isDown = false
        lastGoodMs = clock.monoMs()
        return call()
      },
    })
    const lost: string[] = []
    mill.on('workerLost', ({ reason }) => lost.push(reason))
    await mill.work({ ttl: '10s', heartbeat: 500 })
    const waits: number[] = []
    for (let round = 0; round < 10; round++) {
      await clock.advance(2_500)
      isDown = true
      await clock.until(() => !isDown, 20_000)
      const enqueuedMs = clock.nowMs()
      const handle = await mill.enqueue(job)
      await clock.during(handle.result(), 60_000)
      waits.push((await mill.jobs.get(handle))!.startedAt!.getTime() - enqueuedMs)
    }
    expect(lost).toEqual([])
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_300)
  })

  test.each([400, 900, 1_100])('D8 with a ttl of %i ms the job of a dead worker starts again', async (ttl) => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const starts: number[] = []
    const job = defineJob({
      name: 'job',
      run: () => (starts.push(clock.nowMs()) === 1 ? new Promise<never>(() => undefined) : 'again'),
    })
    const dying = await startProcess(clock, backend, [job], { maintenance: false })
    const heir = await startProcess(clock, backend, [job])
    await dying.mill.work({ ttl, heartbeat: 100 })
    const handle = await dying.mill.enqueue(job)
    await clock.until(() => starts.length === 1)
    await heir.mill.work({ ttl, heartbeat: 100 })
    await clock.advance(1_000)
    dying.crash()
    const crashedMs = clock.nowMs()
    expect(await clock.during(heir.mill.result(handle), 10_000)).toBe('again')
    expect(starts[1]! - crashedMs).toBeLessThanOrEqual(2 * ttl)
  })

  test('D1 a late reply to a heartbeat of an old life does not end the new one', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const replied = gate()
    let old: WorkerId | undefined
    const late: Backend = {
      ...backend,
      workers: {
        ...backend.workers,
        async beat(request) {
          if (request.id !== old) return backend.workers.beat(request)
          const [record] = (await backend.workers.list()).filter(({ id }) => id === old)
          await backend.workers.declareDead([{ id: old, beat: record!.beat }])
          const reply = await backend.workers.beat(request)
          expect(reply.alive).toBe(false)
          await pause(clock, 1_500)
          replied.open()
          return reply
        },
      },
    }
    const aborts: unknown[] = []
    const job = defineJob({
      name: 'job',
      async run({ signal, job: { worker } }) {
        signal.addEventListener('abort', () => aborts.push(signal.reason))
        await pause(clock, 2_500)
        return worker
      },
    })
    const { mill } = await startProcess(clock, late, [job])
    const lost: string[] = []
    mill.on('workerLost', (life) => lost.push(life.worker))
    const worker = await mill.work({ heartbeat: 100 })
    old = worker.ids[0]
    await clock.advance(110)
    // Its claim learns of the death first: the job is run by the next life.
    const handle = await mill.enqueue(job)
    await clock.during(replied.opened, 5_000)
    expect(await clock.during(handle.result(), 5_000)).not.toBe(old)
    expect(lost).toEqual([old])
    expect(aborts).toEqual([])
    expect(await mill.jobs.get(handle)).toMatchObject({ attemptCount: 1, crashCount: 0 })
  })

  test('D2 a stop command that arrives during start leaves no half-started worker', async () => {
    const { clock, mill, job, calls, events, starting } = await stoppedAtBirth()
    await expect(clock.during(starting)).rejects.toMatchObject({ code: 'STOPPED' })
    await clock.advance(1_000)
    const total = (): number => [...calls.values()].reduce((sum, count) => sum + count, 0)
    const before = total()
    await clock.advance(60_000)
    expect(total() - before).toBe(0)
    expect(events).toEqual([])
    const handle = await mill.enqueue(job)
    await clock.advance(5_000)
    expect(await handle.status()).toBe('queued')
    await mill.work()
    expect(await clock.during(handle.result(), 1_000)).toBe('ran')
  })

  test('D2 a worker that was told to stop during its start signs off: the store lists it as alive no more', async () => {
    const { clock, backend, starting } = await stoppedAtBirth()
    await expect(clock.during(starting)).rejects.toMatchObject({ code: 'STOPPED' })
    await clock.advance(1_000)
    expect((await backend.workers.list()).filter(({ state }) => state === 'alive')).toEqual([])
  })

  test('D13 mill.stop() stops the workers although the stop of a consumer fails', async () => {
    const runs = new Tally()
    const consumed = defineJob({ name: 'consumed', queue: 'consumed', run: () => 1 })
    const worked = defineJob({ name: 'worked', queue: 'worked', run: ({ job }) => void runs.add(job.id) })
    let isDown = false
    const { clock, backend, mill, calls } = await setup([consumed, worked], {
      around: async (what, call) => {
        if (isDown && what === 'workers.retire') throw new Error('down')
        return call()
      },
    })
    await mill.enqueue(consumed)
    expect((await mill.consumer({ queues: ['consumed'] }).claim()).length).toBe(1)
    const worker = await mill.work({ queues: ['worked'] })
    let stopped = 0
    mill.on('workerStopped', () => (stopped += 1))
    isDown = true
    await expect(clock.during(mill.stop())).rejects.toThrow('down')
    isDown = false
    expect([stopped, worker.running]).toEqual([1, 0])
    const claims = calls.get('jobs.claim')
    const producer = await startProcess(clock, backend, [worked])
    const handle = await producer.mill.enqueue(worked)
    await clock.advance(30_000)
    expect(calls.get('jobs.claim')).toBe(claims)
    expect(runs.of(handle.id)).toBe(0)
    expect(await producer.mill.jobs.get(handle)).toMatchObject({ status: 'queued' })
  })
})
