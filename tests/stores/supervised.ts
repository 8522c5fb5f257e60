// What a supervisor promises on every store: nothing is lost when its processes are killed or it is told to stop, and what
// they ran starts elsewhere at once.
import { expect, test } from 'vitest'
import type { AnyJob, Millrace } from '../../src/index.ts'
import { JOBS, kill, untilWorking, useSupervisors } from '../supervisor/harness.ts'
import type { Supervised } from '../supervisor/harness.ts'
import { until } from '../support/until.ts'
import type { OpenPlace } from './place.ts'

/** For a longer run: `SUPERVISED_KILLS=30` kills one every 2 s for a minute. */
const KILLS = Number(process.env['SUPERVISED_KILLS'] ?? 3)
const BETWEEN_MS = Number(process.env['SUPERVISED_KILLS_MS'] ?? (KILLS > 5 ? 2_000 : 500))
const BACK_MAX_MS = 2_000
/** The supervisor has to act within this time; how long a process takes to load is up to the machine. */
const ACT_MAX_MS = 1_000

export function supervised(place: OpenPlace): void {
  const world = useSupervisors()

  test(
    'P1 processes that are killed under load are back within 2 s, their jobs run again within that time, and none is lost',
    { timeout: 60_000 + KILLS * (BETWEEN_MS + 4_000) },
    async () => {
      await using at = await place()
      const mill = await at.process(JOBS)
      const here = world()
      const one = here.start({ address: at.address, pools: { mixed: { processes: 3, concurrency: 5 } } })
      await untilWorking(one, 3)
      const load = startLoad(mill)
      // Beside other tests a process may take longer to load than it may take to be replaced.
      const loadMs = one.said('worker process is ready').map(({ afterMs }) => Number(afterMs))
      const backMaxMs = KILLS > 5 ? BACK_MAX_MS : Math.max(BACK_MAX_MS, 2 * Math.max(...loadMs))
      const backMs: number[] = []
      const actedMs: number[] = []
      const againMs: number[] = []
      for (let no = 0; no < KILLS; no++) {
        const held = await mill.enqueue('held', `go-${no}`)
        const starts = () => here.runs().filter(({ job }) => job === held.id)
        await until('the held job to start', () => starts().length === 1)
        const victim = starts()[0]!.pid
        const killedAtMs = Date.now()
        expect(kill(victim, 'SIGKILL')).toBe(true)
        await until('the held job to start again', () => starts().length === 2, { withinMs: 15_000 })
        againMs.push(starts()[1]!.atMs - killedAtMs)
        await until('the pool to be back', () => one.workers().length === 3 && !one.workers().includes(victim))
        const successor = one.workers().at(-1)!
        backMs.push(timeOf(one, 'worker process is ready', successor) - killedAtMs)
        actedMs.push(timeOf(one, 'worker process started', successor) - killedAtMs)
        here.put(`go-${no}`)
        await held.result()
        await load.pause(Math.max(0, BETWEEN_MS - (Date.now() - killedAtMs)))
      }
      const enqueued = await load.stop()
      await untilEmpty(mill)
      const counts = await mill.jobs.counts('faults')
      process.stdout.write(
        `pool back after ${backMs.join(', ')} ms, jobs started again after ${againMs.join(', ')} ms, ${enqueued} jobs\n`,
      )
      expect(counts[0]?.counts).toMatchObject({ completed: enqueued + KILLS, failed: 0 })
      expect(actedMs.filter((ms) => ms > ACT_MAX_MS)).toEqual([])
      expect(backMs.filter((ms) => ms > backMaxMs)).toEqual([])
      expect(againMs.filter((ms) => ms > backMaxMs)).toEqual([])
      one.signal('SIGTERM')
      expect(await one.exit).toBe(0)
    },
  )

  test(
    'P1 a stop with a deadline of 5 s gives back what is unfinished, and it starts elsewhere within 1 s',
    { timeout: 60_000 },
    async () => {
      await using at = await place()
      const mill = await at.process(JOBS)
      const here = world()
      const pools = { mixed: { processes: 1, concurrency: 3 } }
      const leaving = here.start({ address: at.address, pools, supervise: { drainDeadline: '5s' } })
      await untilWorking(leaving, 1)
      const [held, short] = [await mill.enqueue('held', 'go'), await mill.enqueue('plain', 900)]
      const starts = (id: string) => here.runs().filter(({ job }) => job === id)
      await until('both to start', () => starts(held.id).length === 1 && starts(short.id).length === 1)
      const other = here.start({ address: at.address, pools })
      await untilWorking(other, 1)
      const askedAtMs = Date.now()
      leaving.signal('SIGTERM')
      await until('the held job to start elsewhere', () => starts(held.id).length === 2)
      const again = starts(held.id)[1]!
      expect(other.workers(), 'by the other one').toContain(again.pid)
      expect(await leaving.exit).toBe(124)
      expect(again.atMs - askedAtMs, 'within the deadline and a second').toBeLessThan(6_000)
      expect(leaving.said('worker process is killed')).toEqual([])
      here.put('go')
      await Promise.all([held.result(), short.result()])
      // What had the time to finish was not run twice, and what was given back is no attempt.
      expect(starts(short.id)).toHaveLength(1)
      const attempts = await mill.jobs.attempts(held)
      expect(attempts).toMatchObject([{ status: 'released' }, { status: 'success' }])
      const releasedAtMs = attempts[0]!.finishedAt!.getTime()
      process.stdout.write(
        `given back ${releasedAtMs - askedAtMs} ms after the stop, started elsewhere ${again.atMs - releasedAtMs} ms later\n`,
      )
      expect(again.atMs - releasedAtMs).toBeLessThan(1_000)
      other.signal('SIGINT')
      expect(await other.exit).toBe(0)
    },
  )

  test(
    'P1 a pool bounds timeout, attempts, jobs and age of its own, whatever the jobs say',
    { timeout: 60_000 },
    async () => {
      await using at = await place()
      const mill = await at.process(JOBS)
      const here = world()
      const one = here.start({
        address: at.address,
        pools: {
          strict: { queues: ['faults'], processes: 1, concurrency: 1, timeout: '200ms', attempts: 2, maxJobs: 3 },
          aging: { queues: ['rest'], processes: 1, maxAge: '2s' },
        },
      })
      await untilWorking(one, 2)
      const held = await mill.enqueue('held', 'never')
      await expect(held.result()).rejects.toMatchObject({ code: 'JOB_FAILED', cause: { code: 'JOB_TIMEOUT' } })
      expect(await mill.jobs.get(held)).toMatchObject({ status: 'failed', attemptCount: 2, maxAttempts: 8 })
      await (await mill.enqueue('plain', 1)).result()
      const recycled = () => one.said('worker process is recycled').map(({ pool, reason }) => `${pool} ${reason}`)
      await until('both to be recycled', () =>
        ['strict max-jobs', 'aging max-age'].every((why) => recycled().includes(why)),
      )
      await (await mill.enqueue('plain', 1)).result()
      one.signal('SIGTERM')
      expect(await one.exit).toBe(0)
    },
  )
}

export interface Load {
  pause(ms: number): Promise<void>
  /** Answers how many jobs were enqueued. */
  stop(): Promise<number>
}

/** Jobs of 20 ms, one every 10 ms or as fast as the store takes them. */
export function startLoad(mill: Millrace<readonly AnyJob[]>, jobMs = 20): Load {
  let enqueued = 0
  let isStopped = false
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const running = (async () => {
    while (!isStopped) {
      await mill.enqueue('plain', jobMs)
      enqueued += 1
      await pause(10)
    }
  })()
  return {
    pause,
    async stop() {
      isStopped = true
      await running
      return enqueued
    },
  }
}

export async function untilEmpty(mill: Millrace<readonly AnyJob[]>): Promise<void> {
  const isEmpty = async (): Promise<boolean> => {
    const [{ counts } = { counts: undefined }] = await mill.jobs.counts('faults')
    return (
      counts !== undefined &&
      counts.queued + counts.running + counts.dispatched + counts.scheduled + counts.blocked === 0
    )
  }
  await until('the queue to be empty', isEmpty, { withinMs: 30_000, pollMs: 50 })
}

/** When this was said of a process. */
function timeOf({ lines }: Supervised, message: string, pid: number): number {
  const line = lines.find((one) => one.message === message && one.pid === pid)
  return Date.parse(line?.time ?? '')
}
