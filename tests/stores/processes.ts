// What only real processes show: a blocked loop, a kill without a word, and a job that takes its process with it.
import { expect, test } from 'vitest'
import { createJobs } from '../postgres/faults/fixtures/jobs.ts'
import { runsIn } from '../postgres/faults/ledger.ts'
import { useProcesses } from '../postgres/faults/processes.ts'
import { until } from '../postgres/faults/until.ts'
import type { OpenPlace } from './place.ts'

const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })

export function inProcesses(place: OpenPlace): void {
  const processes = useProcesses()

  test('D2 a worker whose loop is blocked for two ttls keeps its job through its heartbeat thread', async () => {
    await using at = await place()
    const mill = await at.process(jobs)
    const times = { ...at.address, heartbeatMs: 500, ttlMs: 2_000 }
    const workers = [await processes.worker(times), await processes.worker(times)]
    const handle = await mill.enqueue('blocking', 4_500)
    await handle.result()
    expect(runsIn(processes.files.runs)).toEqual(new Map([[handle.id, 1]]))
    expect(await mill.jobs.attempts(handle)).toMatchObject([{ attempt: 1, status: 'success' }])
    expect(workers.map((worker) => worker.count('workerLost') + worker.count('expired'))).toEqual([0, 0])
  })

  test('D1 a worker frozen past its ttl finds its late result refused', { timeout: 60_000 }, async () => {
    await using at = await place()
    const mill = await at.process(jobs)
    const times = { ...at.address, heartbeatMs: 500, ttlMs: 2_000 }
    const frozen = await processes.worker(times)
    const handle = await mill.enqueue('held', 0)
    const runs = (): number => runsIn(processes.files.runs).get(handle.id) ?? 0
    await until(() => runs() === 1, 'the first worker to start it')
    frozen.signal('SIGSTOP')
    const other = await processes.worker(times)
    await until(() => runs() === 2, 'the other worker to start it again')
    frozen.signal('SIGCONT')
    await until(() => frozen.count('workerLost') === 1, 'it to notice')
    frozen.tell('go')
    await until(() => frozen.count('stale') === 1, 'its result to be refused')
    other.tell('go')
    await handle.result()
    expect(await mill.jobs.attempts(handle)).toMatchObject([{ status: 'expired' }, { status: 'success' }])
  })

  test(
    'D4 the jobs of a worker that was killed start again within 15 s, with default times',
    { timeout: 60_000 },
    async () => {
      await using at = await place()
      const mill = await at.process(jobs)
      const first = await processes.worker(at.address)
      const handles = await mill.enqueueMany(Array.from({ length: 5 }, () => ['held', 0] as const))
      const runs = () => runsIn(processes.files.runs)
      await until(() => runs().size === 5, 'all of them to start')
      const second = await processes.worker(at.address)
      first.signal('SIGKILL')
      const killedMs = performance.now()
      await until(() => [...runs().values()].every((count) => count === 2), 'all of them to start again', {
        limitMs: 30_000,
      })
      expect(performance.now() - killedMs).toBeLessThan(15_000)
      second.tell('go')
      for (const handle of handles) await handle.result()
      for (const handle of handles) {
        expect(await mill.jobs.attempts(handle)).toMatchObject([{ status: 'expired' }, { status: 'success' }])
      }
    },
  )
}
