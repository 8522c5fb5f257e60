// Small keyed records with compare-and-set and expiry.
import { expect } from 'vitest'
import { dump } from './dump.ts'
import type { Setup, World } from './world.ts'

const SPACE = 'kind:send-welcome'

export function notes({ test }: Setup): void {
  test('J10 a note is written and read back, in its space', async (world) => {
    const version = await world.notes.put({ space: SPACE, key: 'cursor', value: '{"page":3}' })
    expect(await world.notes.get(SPACE, 'cursor')).toEqual({
      key: 'cursor',
      value: '{"page":3}',
      version,
      expiresAtMs: null,
    })
    expect(await world.notes.get('other', 'cursor')).toBeNull()
    expect(await world.notes.get(SPACE, 'other')).toBeNull()
  })

  test('J10 version 0 expects that there is none: of many writers one wins', async (world) => {
    const write = (value: string) => world.notes.put({ space: SPACE, key: 'k', value, expectVersion: 0 })
    const versions = await Promise.all(['1', '2', '3', '4'].map(write))
    expect(versions.filter((version) => version !== null)).toHaveLength(1)
  })

  test('J10 a write with the version that was read wins once', async (world) => {
    const version = await world.notes.put({ space: SPACE, key: 'k', value: '1' })
    const next = await world.notes.put({ space: SPACE, key: 'k', value: '2', expectVersion: version! })
    expect(next).toBeGreaterThan(version!)
    expect(await world.notes.put({ space: SPACE, key: 'k', value: '3', expectVersion: version! })).toBeNull()
    expect((await world.notes.get(SPACE, 'k'))?.value).toBe('2')
  })

  test('J10 a write that expects a version of a note that is gone is refused', async (world) => {
    const version = await world.notes.put({ space: SPACE, key: 'k', value: '1' })
    await world.notes.remove(SPACE, 'k')
    expect(await world.notes.put({ space: SPACE, key: 'k', value: '2', expectVersion: version! })).toBeNull()
    expect(await world.notes.get(SPACE, 'k')).toBeNull()
  })

  test('J10 a write without an expectation always wins', async (world) => {
    await world.notes.put({ space: SPACE, key: 'k', value: '1' })
    expect(await world.notes.put({ space: SPACE, key: 'k', value: '2' })).not.toBeNull()
    expect((await world.notes.get(SPACE, 'k'))?.value).toBe('2')
  })

  test('J10 increments add up, from 0, and none is lost', async (world) => {
    const sums = await Promise.all(Array.from({ length: 25 }, () => world.notes.increment(SPACE, 'sent', 2)))
    expect([...sums].sort((a, b) => a - b)).toEqual(Array.from({ length: 25 }, (_, index) => (index + 1) * 2))
    expect(await world.notes.increment(SPACE, 'sent', -50)).toBe(0)
    expect((await world.notes.get(SPACE, 'sent'))?.value).toBe('0')
  })

  test('J10 an increment starts from a number that was written and makes older versions stale', async (world) => {
    const version = await world.notes.put({ space: SPACE, key: 'n', value: '40' })
    expect(await world.notes.increment(SPACE, 'n', 2)).toBe(42)
    expect(await world.notes.put({ space: SPACE, key: 'n', value: '0', expectVersion: version! })).toBeNull()
  })

  test('D10 a note with a life is absent when it is over', async (world) => {
    await world.notes.put({ space: SPACE, key: 'k', value: '1', ttlMs: 1_000 })
    expect((await world.notes.get(SPACE, 'k'))?.expiresAtMs).toBe(world.clock.nowMs() + 1_000)
    await world.clock.advance(999)
    expect(await world.notes.get(SPACE, 'k')).not.toBeNull()
    await world.clock.advance(1)
    expect(await world.notes.get(SPACE, 'k')).toBeNull()
    expect(await world.notes.list(SPACE, 10)).toEqual([])
  })

  test('D10 an expired note counts as none for the next writer', async (world) => {
    await world.notes.put({ space: SPACE, key: 'k', value: '7', ttlMs: 10 })
    await world.notes.put({ space: SPACE, key: 'n', value: '7', ttlMs: 10 })
    await world.clock.advance(10)
    expect(await world.notes.put({ space: SPACE, key: 'k', value: '8', expectVersion: 0 })).not.toBeNull()
    expect(await world.notes.increment(SPACE, 'n', 1)).toBe(1)
    expect(await world.notes.remove(SPACE, 'unknown')).toBe(false)
  })

  test('D10 a version is never used again, not even after the note expired or was removed', async (world) => {
    const write = (ttlMs?: number) =>
      world.notes.put({ space: SPACE, key: 'k', value: '1', ...(ttlMs !== undefined && { ttlMs }) })
    const versions = [await write(10)]
    await world.clock.advance(10)
    versions.push(await write(10))
    await world.clock.advance(10)
    await world.notes.prune(10)
    versions.push(await write())
    await world.notes.remove(SPACE, 'k')
    versions.push(await write())
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a! - b!))
  })

  test('J10 an increment keeps the life of a note', async (world) => {
    await world.notes.put({ space: SPACE, key: 'n', value: '1', ttlMs: 100 })
    const { expiresAtMs } = (await world.notes.get(SPACE, 'n'))!
    await world.clock.advance(50)
    await world.notes.increment(SPACE, 'n', 1)
    expect((await world.notes.get(SPACE, 'n'))?.expiresAtMs).toBe(expiresAtMs)
  })

  test('J10 a write without a life makes a note that stays', async (world) => {
    await world.notes.put({ space: SPACE, key: 'k', value: '1', ttlMs: 10 })
    await world.notes.put({ space: SPACE, key: 'k', value: '2' })
    await world.clock.advance(1_000)
    expect((await world.notes.get(SPACE, 'k'))?.value).toBe('2')
  })

  test('J10 removing says whether there was one', async (world) => {
    await world.notes.put({ space: SPACE, key: 'k', value: '1' })
    expect(await world.notes.remove(SPACE, 'k')).toBe(true)
    expect(await world.notes.remove(SPACE, 'k')).toBe(false)
  })

  test('J10 notes are listed by key, page by page', async (world) => {
    for (const key of ['c', 'a', 'e', 'b', 'd']) await world.notes.put({ space: SPACE, key, value: '1' })
    await world.notes.put({ space: 'other', key: 'aa', value: '1' })
    const first = await world.notes.list(SPACE, 2)
    expect(first.map(({ key }) => key)).toEqual(['a', 'b'])
    expect(await keysAfter(world, 'b')).toEqual(['c', 'd'])
    expect(await keysAfter(world, 'd')).toEqual(['e'])
  })

  test('J10 pruning removes expired notes only, at most as many as asked', async (world) => {
    for (const key of ['a', 'b', 'c']) await world.notes.put({ space: SPACE, key, value: '1', ttlMs: 10 })
    await world.notes.put({ space: SPACE, key: 'kept', value: '1' })
    expect(await world.notes.prune(10)).toBe(0)
    await world.clock.advance(10)
    expect(await world.notes.prune(2)).toBe(2)
    expect(await world.notes.prune(2)).toBe(1)
    expect((await world.notes.list(SPACE, 10)).map(({ key }) => key)).toEqual(['kept'])
  })

  test('J10 a refused write leaves no trace', async (world) => {
    await world.notes.put({ space: SPACE, key: 'k', value: '1', ttlMs: 100 })
    const before = await dump(world.backend, [SPACE])
    await world.notes.put({ space: SPACE, key: 'k', value: '2', expectVersion: 0, ttlMs: 9_999 })
    expect(await dump(world.backend, [SPACE])).toEqual(before)
  })
}

async function keysAfter(world: World, cursor: string): Promise<readonly string[]> {
  return (await world.notes.list(SPACE, 2, cursor)).map(({ key }) => key)
}
