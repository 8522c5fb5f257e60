// Claims with a visibility of their own: the manual consumer, without our worker loop.
import { expect } from 'vitest'
import { decideRemove } from '../../src/core/decide.ts'
import type { LeaseNumber } from '../../src/core/job.ts'
import { dump } from './dump.ts'
import { completed, expired, released, retried } from './outcomes.ts'
import type { Setup } from './world.ts'

const LEASE_MS = 1_000

export function visibility({ test }: Setup): void {
  test('D13 a claim with a visibility is due as expired when it lapses, though its worker lives', async (world) => {
    const id = await world.addOne()
    const worker = await world.worker()
    await worker.ask({ leaseMs: LEASE_MS })
    await world.clock.advance(LEASE_MS - 1)
    expect(await world.jobs.due('expired', 10)).toEqual([])
    await world.clock.advance(2)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id)).toEqual([id])
  })

  test('D13 a claim without a visibility never lapses while its worker lives', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    await worker.claim()
    await world.clock.advance(24 * 60 * 60_000)
    expect(await world.jobs.due('expired', 10)).toEqual([])
  })

  test('D13 a claim with a visibility outlives its worker until it lapses', async (world) => {
    const [visible, plain] = await world.add({}, {})
    const worker = await world.worker()
    await worker.ask({ leaseMs: LEASE_MS, limit: 1 })
    await worker.claim(1)
    await world.kill(worker)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id)).toEqual([plain])
    await world.clock.advance(LEASE_MS + 1)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id).sort()).toEqual([visible, plain].sort())
  })

  test('D13 a lapsed run of a dead worker is listed once', async (world) => {
    const id = await world.addOne()
    const worker = await world.worker()
    await worker.ask({ leaseMs: LEASE_MS })
    await world.clock.advance(LEASE_MS + 1)
    await world.kill(worker)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id)).toEqual([id])
  })

  test('D13 extend moves the visibility to that long from now', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const { jobs } = await worker.ask({ leaseMs: LEASE_MS })
    const lease = { jobId: jobs[0]!.id, lease: jobs[0]!.lease }
    await world.clock.advance(900)
    expect(await world.jobs.extend([lease], LEASE_MS)).toEqual([])
    await world.clock.advance(999)
    expect(await world.jobs.due('expired', 10)).toEqual([])
    await world.clock.advance(2)
    expect(await world.jobs.due('expired', 10)).toHaveLength(1)
  })

  test('D13 extend answers the leases that are lost and moves the others', async (world) => {
    await world.add({}, {}, {}, {})
    const worker = await world.worker()
    const { jobs } = await worker.ask({ leaseMs: LEASE_MS })
    const [kept, done, again, gone] = jobs.map(({ id, lease }) => ({ jobId: id, lease }))
    await world.apply(completed(jobs[1]!), retried(jobs[2]!), released(jobs[3]!), decideRemove(gone!.jobId)[0])
    await worker.claim(1)
    const lost = await world.jobs.extend([kept!, done!, again!, gone!], 5_000)
    expect(lost).toEqual([done, again, gone])
    await world.clock.advance(LEASE_MS + 1)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id)).not.toContain(kept!.jobId)
  })

  test('D13 a lapsed lease that nobody took yet can still be extended or settled', async (world) => {
    await world.add({}, {})
    const worker = await world.worker()
    const { jobs } = await worker.ask({ leaseMs: LEASE_MS })
    await world.clock.advance(LEASE_MS + 1)
    expect(await world.jobs.extend([{ jobId: jobs[0]!.id, lease: jobs[0]!.lease }], LEASE_MS)).toEqual([])
    expect(await world.apply(completed(jobs[1]!))).toEqual(['applied'])
    expect(await world.jobs.due('expired', 10)).toEqual([])
  })

  test('D13 extending a lease that was claimed without a visibility gives it none', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const run = await worker.claimOne()
    expect(await world.jobs.extend([{ jobId: run.id, lease: run.lease }], 10)).toEqual([])
    await world.clock.advance(100)
    expect(await world.jobs.due('expired', 10)).toEqual([])
  })

  test('D13 a stale lease number is lost and changes nothing', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const { jobs } = await worker.ask({ leaseMs: LEASE_MS })
    const stale = { jobId: jobs[0]!.id, lease: (jobs[0]!.lease - 1) as LeaseNumber }
    const before = await dump(world.backend)
    expect(await world.jobs.extend([stale], 50_000)).toEqual([stale])
    expect(await dump(world.backend)).toEqual(before)
    await world.clock.advance(LEASE_MS + 1)
    expect(await world.jobs.due('expired', 10)).toHaveLength(1)
  })

  test('D13 claim, ack, nack and delete work under the same guards', async (world) => {
    const [acked, nacked, deleted] = await world.add({}, {}, {})
    const worker = await world.worker()
    const { jobs } = await worker.ask({ leaseMs: LEASE_MS })
    expect(await world.apply(completed(jobs[0]!), retried(jobs[1]!, 10), ...decideRemove(jobs[2]!.id))).toEqual([
      'applied',
      'applied',
      'stale',
      'applied',
    ])
    await world.apply(completed(jobs[2]!))
    expect(await world.statusOf(acked!, nacked!, deleted!)).toEqual(['completed', 'scheduled', 'gone'])
  })

  test('D13 a job whose visibility lapsed is claimed again after its expiry, and the first consumer is refused', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const { jobs } = await worker.ask({ leaseMs: LEASE_MS })
    await world.clock.advance(LEASE_MS + 1)
    await world.apply(expired(jobs[0]!))
    const next = await worker.claimOne()
    expect(next.id).toBe(jobs[0]!.id)
    expect(await world.apply(completed(jobs[0]!))).toEqual(['stale'])
    expect(await world.apply(completed(next))).toEqual(['applied'])
  })
}
