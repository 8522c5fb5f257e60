// Hand-overs over a real Redis: an idle worker does not claim what it is given, and what the connection for messages loses
// is looked for.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { Millrace, RunContext } from '../../src/index.ts'
import type { ClaimReply } from '../../src/store/ports.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import { until } from '../redis/support.ts'
import type { OpenPlace, Place } from './place.ts'

const ROUNDS = 15
/** A poll of an idle worker, the time a message may take, and a look; then the claim. */
const FOUND_MAX_MS = 3_000

async function setup(at: Place) {
  const backend = at.backend()
  const seen = { claimed: 0, handed: 0, runs: [] as number[] }
  const wrapped = wrapBackend(backend, async (what, call) => {
    const value = await call()
    if (what === 'jobs.claim') seen.claimed += (value as ClaimReply).jobs.length // what a claim answers
    return value
  })
  const { handOvers } = backend
  const lossy = { isDeaf: false }
  const job = defineJob({ name: 'job', run: ({ input }: RunContext<number>) => void seen.runs.push(input) })
  const mill: Millrace = await at.process([job], {
    backend: {
      ...wrapped,
      handOvers: {
        listen: (worker, onHandOver, onBack) =>
          handOvers!.listen(
            worker,
            (handOver) => {
              if (lossy.isDeaf) return
              seen.handed += handOver.jobs.length
              onHandOver(handOver)
            },
            onBack,
          ),
      },
    },
  })
  const worker = await mill.work({ concurrency: 5 })
  return { mill, job, worker, seen, lossy }
}

/** `cutMessages`: the server ends the connections that wait for messages. */
export function handingOver(place: OpenPlace, cutMessages: () => Promise<unknown>): void {
  test('D3 an idle worker is handed its jobs and claims none of them', async () => {
    await using at = await place()
    const { mill, job, seen } = await setup(at)
    await mill.enqueueAndWait(job, -1)
    const before = { ...seen }
    for (let no = 0; no < ROUNDS; no++) {
      await mill.enqueueAndWait(job, no)
      // The claim that stands next goes out with the settlement.
      await until(() => seen.runs.length === no + 2, 'the run')
    }
    expect(seen.runs).toEqual([-1, ...Array.from({ length: ROUNDS }, (_, no) => no)])
    expect(seen.handed - before.handed + (seen.claimed - before.claimed)).toBe(ROUNDS)
    expect(seen.handed - before.handed).toBeGreaterThan(ROUNDS / 2)
  })

  test('D3 what is handed over while the connection for messages is lost runs all the same, once', async () => {
    await using at = await place()
    const { mill, job, seen } = await setup(at)
    await mill.enqueueAndWait(job, -1)
    for (let no = 0; no < ROUNDS; no++) {
      const [handle] = await Promise.all([mill.enqueue(job, no), cutMessages()])
      await until(() => seen.runs.includes(no), 'the job', FOUND_MAX_MS)
      await handle.result()
    }
    expect(seen.runs).toHaveLength(ROUNDS + 1)
  })

  test('D3 a message that never comes is missed: the job runs within seconds, and nothing is handed over any more', async () => {
    await using at = await place()
    const { mill, job, seen, lossy } = await setup(at)
    await mill.enqueueAndWait(job, -1)
    lossy.isDeaf = true
    for (let no = 0; no < ROUNDS; no++) {
      const handle = await mill.enqueue(job, no)
      await until(() => seen.runs.includes(no), 'the job', FOUND_MAX_MS)
      await handle.result()
    }
    lossy.isDeaf = false
    const before = seen.handed
    await mill.enqueueAndWait(job, ROUNDS)
    expect(seen.handed).toBe(before)
    expect(seen.runs).toHaveLength(ROUNDS + 2)
    expect((await mill.jobs.list({ status: 'completed' })).items.every(({ attemptCount }) => attemptCount === 1)).toBe(
      true,
    )
  })

  test('D2 a worker that was stopped while its claim stood is handed nothing', async () => {
    await using at = await place()
    const { mill, job, worker } = await setup(at)
    await mill.enqueueAndWait(job, -1)
    await worker.stop()
    const handle = await mill.enqueue(job, 1)
    expect(await mill.jobs.get(handle)).toMatchObject({ worker: null, crashCount: 0, attemptCount: 0 })
    expect(['queued', 'dispatched']).toContain(await handle.status())
  })
}
