// A job that takes its process with it, and those that run beside it.
import { expect, test } from 'vitest'
import { createJobs } from '../postgres/faults/fixtures/jobs.ts'
import { useProcesses } from '../postgres/faults/processes.ts'
import { until } from '../postgres/faults/until.ts'
import type { OpenPlace } from './place.ts'

const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })

export function poison(place: OpenPlace): void {
  const processes = useProcesses()

  test(
    'D8 a job that kills its process runs alone and then fails as poison; no neighbour does',
    { timeout: 60_000 },
    async () => {
      await using at = await place()
      const mill = await at.process(jobs)
      const times = { ...at.address, heartbeatMs: 500, ttlMs: 2_000, concurrency: 4 }
      // Watches and judges; takes part in nothing.
      const watcher = await at.process(jobs)
      await watcher.work({ queues: ['other'], heartbeat: 500, ttl: 2_000 })
      const poison = await mill.enqueue('deadly', 0, { priority: 'critical' })
      const neighbours = await mill.enqueueMany(Array.from({ length: 12 }, () => ['plain', 150] as const))
      const ended = Promise.allSettled([poison, ...neighbours].map((handle) => handle.result()))
      let isOver = false
      void ended.then(() => (isOver = true))
      let crashes = 0
      for (let worker = await processes.worker(times); !isOver;) {
        await until(() => isOver || !worker.isAlive, 'the next crash or the end')
        if (isOver) break
        crashes += 1
        worker = await processes.worker(times)
      }
      expect(crashes).toBe(3)
      const letter = await mill.deadLetters.get(poison)
      expect(letter).toMatchObject({ status: 'failed', crashCount: 3, lastError: { code: 'POISON' } })
      expect((await mill.deadLetters.list()).items.map(({ id }) => id)).toEqual([poison.id])
      const [counts] = await mill.jobs.counts('faults')
      expect(counts!.counts).toMatchObject({ completed: 12, failed: 1, running: 0, queued: 0, scheduled: 0 })
      // Whoever runs beside it dies with it. The third time there was nobody.
      const lastWorker = letter!.attempts.at(-1)!.worker
      const trails = await Promise.all(neighbours.map((handle) => mill.jobs.attempts(handle)))
      const victims = trails
        .flat()
        .filter(({ worker, status }) => worker === lastWorker && (status === 'expired' || status === 'failed'))
      expect(victims).toEqual([])
    },
  )
}
