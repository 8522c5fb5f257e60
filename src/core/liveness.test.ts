// Who may be declared dead, and when the judge must be patient.
import { describe, expect, test } from 'vitest'
import type { WorkerId } from './job.ts'
import { EMPTY_WATCH, watchBeats } from './liveness.ts'
import type { Watch } from './liveness.ts'

const TTL_MS = 10_000
const worker = 'w' as WorkerId
const alive = (beat: number) => [{ id: worker, beat, state: 'alive' as const }]

/** Passes every second from `fromMs` to `toMs`, all of which see the same beat. */
function passes(watch: Watch, beat: number, fromMs: number, toMs: number): { watch: Watch; deadAtMs: number | null } {
  let at = watch
  for (let ms = fromMs; ms <= toMs; ms += 1_000) {
    const seen = watchBeats(at, alive(beat), { askedMs: ms, answeredMs: ms }, TTL_MS)
    at = seen.watch
    if (seen.dead.length > 0) return { watch: at, deadAtMs: ms }
  }
  return { watch: at, deadAtMs: null }
}

describe('watchBeats', () => {
  test('a worker is dead one ttl after its beat was first seen unchanged, not before', () => {
    expect(passes(EMPTY_WATCH, 1, 0, 60_000).deadAtMs).toBe(TTL_MS)
  })

  test('a new beat starts the wait again', () => {
    const { watch } = passes(EMPTY_WATCH, 1, 0, 9_000)
    expect(passes(watch, 2, 10_000, 60_000).deadAtMs).toBe(20_000)
  })

  test('after a gap of the judge everybody gets a full ttl', () => {
    const { watch } = passes(EMPTY_WATCH, 1, 0, 9_000)
    expect(passes(watch, 1, 60_000, 120_000).deadAtMs).toBe(60_000 + TTL_MS)
  })

  test('a beat counts from when the answer came, so a slow call makes nobody dead earlier', () => {
    const first = watchBeats(EMPTY_WATCH, alive(1), { askedMs: 0, answeredMs: 4_000 }, TTL_MS).watch
    expect(passes(first, 1, 5_000, 60_000).deadAtMs).toBe(14_000)
  })

  test('the judge knows when the next of them dies, and finds it dead then', () => {
    const first = watchBeats(EMPTY_WATCH, alive(1), { askedMs: 0, answeredMs: 40 }, TTL_MS)
    expect([first.dead.length, first.nextDeathMs]).toEqual([0, TTL_MS + 40])
    const { watch } = passes(first.watch, 1, 1_000, 9_000)
    const last = watchBeats(watch, alive(1), { askedMs: TTL_MS + 40, answeredMs: TTL_MS + 45 }, TTL_MS)
    expect([last.dead.length, last.nextDeathMs]).toEqual([1, Infinity])
  })

  test('the dead are not judged again', () => {
    const dead = [{ id: worker, beat: 1, state: 'dead' as const }]
    const { watch } = passes(EMPTY_WATCH, 1, 0, 9_000)
    expect(watchBeats(watch, dead, { askedMs: 10_000, answeredMs: 10_000 }, TTL_MS).dead).toEqual([])
  })
})
