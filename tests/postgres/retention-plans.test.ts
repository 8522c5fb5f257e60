// Plans are made once per connection, often when a partition is still empty; they must be right when it is full.
import { expect, test } from 'vitest'
import { DAY, retentionWorlds } from './retention-world.ts'

const { setup } = retentionWorlds(18)

/** A claim of one job with what a worker sends when nothing is to be settled. */
const CLAIM = `select * from millrace.cycle($1, $2, '{mail}', 1, null, null, null, null, '{0}', '{0}', null, null, null, null, $3)`

test('P5 a claim planned beside empty partitions stays cheap when these have filled up', async () => {
  const world = await setup()
  for (let weeks = 0; weeks < 4; weeks++) {
    await world.settle()
    await world.clock.advance(7 * DAY)
  }
  await world.settle()
  const worker = await world.worker()
  let claimNo = 0
  // As autovacuum does: now they are known to be empty.
  await world.sql('analyze')
  const claim = async (): Promise<void> => {
    const id = await world.addOne()
    const cancel = { job_id: id, edge: 'cancel', guard_from: ['queued'], goes_to: 'cancelled', audit: 4, ended: 3 }
    expect(await world.sql(CLAIM, worker.id, ++claimNo, JSON.stringify([cancel]))).toHaveLength(1)
    await world.addOne()
    expect(await world.sql(CLAIM, worker.id, ++claimNo, null)).toHaveLength(2)
  }
  for (let no = 0; no < 8; no++) await claim()
  await world.fill(10_000, 1)
  await world.clock.advance(120_000)
  await world.sql('begin')
  for (let no = 0; no < 4; no++) await claim()
  const read = await world.value(
    "select sum(idx_tup_fetch)::int from pg_stat_xact_user_tables where relname like 'job_bodies_%' or relname like 'job_attempts_%'",
  )
  await world.sql('commit')
  expect(read).toBeLessThan(200)
})
