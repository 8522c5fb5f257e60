// A report marks its row (ADR 006 §7), in PostgreSQL and in the ledger in memory that the simulator runs on.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import type { Ledger } from '../../src/backends/hybrid/ports.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import type { LeaseNumber, LeaseRef, WorkerId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { queueSettings } from '../conformance/world.ts'
import { createLedgerWorld, newJob } from './ledger-world.ts'

interface Half {
  readonly ledger: Ledger
  readonly backend: Backend
  close(): Promise<void>
}

async function inMemory(): Promise<Half> {
  const world = new World(new ManualClock())
  const backend = backendOver(world)
  await backend.start()
  return { ledger: memoryLedger(world, new LedgerState()), backend, close: () => backend.stop() }
}

const { newId } = createRuntime()
const QUEUE = 'mail'

describe.each([
  ['in memory', inMemory],
  ['PostgreSQL', createLedgerWorld],
] as readonly (readonly [string, () => Promise<Half>])[])('the ledger %s', (_, open) => {
  let half: Half
  let epoch: number

  beforeAll(async () => {
    half = await open()
    await half.backend.queues.ensure([queueSettings(QUEUE)])
    const queues = [{ queue: QUEUE, expected: 0 }]
    const [row] = await half.ledger.flip({ queues, mode: 'token', redisId: 'r', unlessHealthy: false })
    epoch = row!.epoch
    await half.ledger.born(QUEUE, epoch, 'born')
  })

  afterAll(() => half.close())

  async function taken(): Promise<{ readonly worker: WorkerId; readonly ref: LeaseRef }> {
    const worker = newId() as WorkerId // minted here
    await half.ledger.register({ id: worker, host: 'localhost', pid: 1, queues: [QUEUE], concurrency: 10 })
    await half.ledger.adopt(worker, epoch, [])
    const job = newJob(QUEUE)
    const { leases } = await half.ledger.insert([job], new Map([[QUEUE, `${epoch}.born`]]))
    return { worker, ref: { jobId: job.id, lease: leases[0] as LeaseNumber } } // minted by the ledger
  }

  const reportOf = ({ jobId, lease }: LeaseRef): Transition => ({
    jobId,
    edge: 'report',
    guard: { from: ['running'], lease },
    to: 'running',
    progress: '5',
  })

  test('marks the row of whoever reports: it runs from now on, and nobody takes it back', async () => {
    const { worker, ref } = await taken()
    expect((await half.ledger.settle(worker, [reportOf(ref)])).verdicts).toEqual(['applied'])
    const [job] = await half.backend.query.get([ref.jobId])
    expect(job).toMatchObject({ status: 'running', worker, progress: '5', lease: ref.lease })
    expect(job?.startedAtMs).not.toBeNull()
    expect(await half.backend.jobs.holdings(worker, 1)).toEqual([ref])
    expect(await half.ledger.requeue(QUEUE, epoch, [ref])).toBe(0)
  })

  test('leaves the row of a worker that is dead as it is', async () => {
    const { worker, ref } = await taken()
    await half.backend.workers.retire(worker)
    expect((await half.ledger.settle(worker, [reportOf(ref)])).verdicts).toEqual(['applied'])
    expect((await half.backend.query.get([ref.jobId]))[0]).toMatchObject({ status: 'dispatched' })
    expect(await half.ledger.requeue(QUEUE, epoch, [ref])).toBe(1)
  })
})
