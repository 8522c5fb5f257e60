// What may befall the race in memory is what may befall a Redis.
import { expect, test } from 'vitest'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import { plant } from '../../src/core/planted.ts'
import { QUEUE, holdings, openRace, passed, push, session, take, token, tokens } from './race-setup.ts'

test('a lost suffix: the last calls were never made, the others were', async () => {
  const race = new MemoryRace()
  const tag = await openRace(race, 1)
  for (let lease = 1; lease <= 300; lease++) await push(race, tag, [token(lease)])
  await take(race, tag, 'a', 1, 10)
  await take(race, tag, 'a', 2, 10)
  expect(race.loseSuffix(1)).toBe(1)
  expect(await holdings(race, tag, 'a', 1)).toHaveLength(10)
  expect(race.loseSuffix(2)).toBe(2)
  expect(race.inspect(QUEUE).lanes[1]).toHaveLength(300)
  expect(race.loseSuffix(60)).toBe(60)
  expect(race.inspect(QUEUE).lanes[1]).toHaveLength(240)
  expect(await take(race, tag, 'a', 1, 3)).toEqual([1, 2, 3])
})

test('an old copy comes back as it was, as often as it is asked for', async () => {
  const race = new MemoryRace()
  const tag = await openRace(race, 1)
  await push(race, tag, tokens(1, 5))
  const copy = race.snapshot()
  for (let times = 0; times < 2; times++) {
    expect(await take(race, tag, 'a', 1, 9)).toEqual([1, 2, 3, 4, 5])
    race.restore(copy)
  }
  race.become('memory-2')
  const refused = { why: 'IDENTITY', redisId: 'memory-2', epoch: tag }
  expect((await race.audit(QUEUE, tag, 0, [])).refused).toEqual(refused)
})

test('flushed, it knows no epoch; a second birth of a number is another', async () => {
  const race = new MemoryRace()
  const tag = await openRace(race, 1)
  race.flush()
  expect((await race.audit(QUEUE, tag, 0, [])).refused).toMatchObject({ why: 'EPOCH', epoch: '' })
  expect(await openRace(race, 1)).not.toBe(tag)
})

test('an evicted part tears the epoch, full memory stops a push', async () => {
  const race = new MemoryRace()
  const tag = await openRace(race, 1)
  await push(race, tag, tokens(1, 2))
  race.setFull(true)
  expect((await push(race, tag, tokens(3, 1))).isFull).toBe(true)
  await expect(race.probe(QUEUE, tag)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await take(race, tag, 'a', 1, 1)).toEqual([1])
  race.evict(QUEUE, 'normal')
  const request = { session: session('a'), c: 2, most: 1, done: [] }
  expect((await race.take(QUEUE, tag, request)).refused?.why).toBe('TORN')
})

test('where memory is full, whoever knows of no epoch clears what is left of the last one', async () => {
  const race = new MemoryRace()
  const tag = await openRace(race, 1)
  await push(race, tag, tokens(1, 2))
  race.setFull(true)
  await expect(race.probe(QUEUE, null)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  race.setFull(false)
  expect((await race.probe(QUEUE, tag)).refused).toMatchObject({ why: 'EPOCH', epoch: '' })
  expect(race.inspect(QUEUE).held.size).toBe(0)
})

test('with a guard left out it does what the guard forbids', async () => {
  const race = new MemoryRace()
  const tag = await openRace(race, 1, { firstLease: 10 })
  try {
    plant('hybrid-floor-ignored')
    expect((await push(race, tag, tokens(5, 1))).depths).toEqual([0, 1, 0])
    plant('hybrid-claim-number-ignored')
    await take(race, tag, 'a', 1, 0)
    expect(await take(race, tag, 'a', 1, 1)).toEqual([5])
    await take(race, tag, 'a', 2, 0, [5])
    plant('hybrid-pusher-ignored')
    await push(race, tag, tokens(15, 1))
    await take(race, tag, 'a', 3, 1)
    await take(race, tag, 'a', 4, 0, [15])
    expect((await push(race, tag, tokens(15, 1))).depths).toEqual([0, 1, 0])
    await take(race, tag, 'a', 5, 1)
    plant('hybrid-revoke-ignored')
    await push(race, tag, tokens(20, 1))
    expect(passed(await race.revoke(QUEUE, tag, [token(20).text.split(' ')[0]!]))).toEqual(['revoked'])
    expect(await take(race, tag, 'a', 6, 1)).toEqual([20])
  } finally {
    plant(undefined)
  }
})
