// Every answer of every script, on a real Redis and on the model that simulations use.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { Handed, Race, Stand, Token } from '../../src/backends/hybrid/ports.ts'
import { raceProblems } from '../../src/backends/hybrid/race-invariants.ts'
import type { RaceQueue } from '../../src/backends/hybrid/race-model.ts'
import type { Lane } from '../../src/core/priority.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { QUEUE, WINDOW, connectRace, fieldOf, holdings, leasesOf, openRace, passed, push } from './race-setup.ts'
import { session, take, token, tokens } from './race-setup.ts'

interface Subject {
  readonly race: Race
  read(): Promise<RaceQueue>
}

const subjects = [
  {
    name: 'redis',
    create: async (): Promise<Subject> => connectRace({ url: (await sharedRedis()).url }),
  },
  {
    name: 'model',
    create: async (): Promise<Subject> => {
      const race = new MemoryRace()
      return { race, read: async () => race.inspect(QUEUE) }
    },
  },
]

describe.each(subjects)('the race on $name', ({ create }) => {
  let subject: Subject
  let race: Race
  let epoch = 0
  let tag = ''

  beforeAll(async () => {
    subject = await create()
    race = subject.race
  })

  afterAll(async () => {
    expect(raceProblems(await subject.read())).toEqual([])
    await race.stop()
  })

  /** A fresh epoch on the same keys: what was there before is gone. */
  async function fresh(options: Parameters<typeof openRace>[2] = {}): Promise<string> {
    expect(raceProblems(await subject.read())).toEqual([])
    return (tag = await openRace(race, ++epoch, options))
  }

  describe('open', () => {
    test('the same number again gives the same birth, and clears nothing', async () => {
      await fresh()
      await push(race, tag, tokens(1, 3))
      expect(await openRace(race, epoch)).toBe(tag)
      expect(await take(race, tag, 'a', 1, 10)).toEqual([1, 2, 3])
    })

    test('a lower number is told the higher one', async () => {
      await fresh()
      const redisId = await race.identity(QUEUE)
      const old = { epoch: epoch - 1, redisId, firstLease: 1, version: 1, paused: false, lowerLaneShare: 16 }
      expect(await race.open(QUEUE, old)).toEqual({ kind: 'ahead', epoch })
    })

    test('another server than the one meant refuses', async () => {
      const redisId = await race.identity(QUEUE)
      const wrong = { epoch: 1e6, redisId: 'other', firstLease: 1, version: 1, paused: false, lowerLaneShare: 16 }
      expect(await race.open(QUEUE, wrong)).toEqual({ kind: 'identity', redisId })
    })

    test('a higher number begins empty, and calls of the old epoch are refused with what is there now', async () => {
      const old = await fresh()
      await push(race, old, tokens(1, 3))
      await fresh()
      const redisId = await race.identity(QUEUE)
      const refused = { refused: { why: 'EPOCH', redisId, epoch: tag }, value: null }
      const request = { pusher: 'p1', tokens: tokens(9, 1), backlog: null, window: WINDOW }
      expect(await race.push(QUEUE, old, request)).toEqual(refused)
      expect(await race.take(QUEUE, old, { session: session('a'), c: 1, most: 1, done: [] })).toEqual(refused)
      expect(await race.holdings(QUEUE, old, { session: session('a'), c: 'dead', cursor: '0' })).toEqual(refused)
      expect(await race.drop(QUEUE, old, session('a'), [], true)).toEqual(refused)
      expect(await race.revoke(QUEUE, old, [fieldOf(1)])).toEqual(refused)
      expect(await race.audit(QUEUE, old, 5, [fieldOf(1)])).toEqual(refused)
      expect(await race.config(QUEUE, old, { version: 9, paused: true, lowerLaneShare: 1 })).toEqual(refused)
      expect(await take(race, tag, 'a', 1, 10)).toEqual([])
    })
  })

  describe('push', () => {
    test('tokens come out as they went in, in order', async () => {
      await fresh()
      const list = [token(1, { body: 'a b  c' }), token(2, { body: '{"é":"日本"}\\n' }), token(3, { body: '' })]
      await push(race, tag, list)
      const reply = passed(await race.take(QUEUE, tag, { session: session('a'), c: 1, most: 5, done: [] }))
      expect(reply).toEqual({ kind: 'taken', texts: list.map(({ text }) => text) })
    })

    test('a token below the floor is late and does not appear', async () => {
      await fresh({ firstLease: 100 })
      const reply = await push(race, tag, [...tokens(98, 4)])
      expect(reply.depths).toEqual([0, 2, 0])
      expect(await take(race, tag, 'a', 1, 10)).toEqual([100, 101])
    })

    test('a doubled call of one pusher adds nothing, also when its tokens are gone', async () => {
      await fresh()
      await push(race, tag, tokens(1, 3))
      expect((await push(race, tag, tokens(1, 3))).depths).toEqual([0, 3, 0])
      expect(await take(race, tag, 'a', 1, 10)).toEqual([1, 2, 3])
      expect(await take(race, tag, 'a', 2, 10, [1, 2, 3])).toEqual([])
      expect((await push(race, tag, tokens(1, 3))).depths).toEqual([0, 0, 0])
    })

    test('a lower lease of another pusher is new; a held one is not, whoever brings it', async () => {
      await fresh()
      await push(race, tag, tokens(10, 2), 'p1')
      await push(race, tag, [...tokens(5, 1), ...tokens(10, 2)], 'p2')
      expect(await take(race, tag, 'a', 1, 10)).toEqual([10, 11, 5])
    })

    test('a lane over twice the window is full, and nothing of the call is pushed', async () => {
      await fresh()
      const request = (list: Token[]) => ({ pusher: 'p1', tokens: list, backlog: null, window: 2 })
      expect(passed(await race.push(QUEUE, tag, request(tokens(1, 4)))).isFull).toBe(false)
      const mixed = [...tokens(5, 1, 0), ...tokens(6, 1)]
      const reply = passed(await race.push(QUEUE, tag, request(mixed)))
      expect(reply).toEqual({ isFull: true, depths: [0, 4, 0], backlog: [false, false, false] })
      expect(passed(await race.push(QUEUE, tag, request(tokens(5, 1, 0)))).depths).toEqual([1, 4, 0])
    })

    test('the backlog bits are kept until somebody sets them; no tokens is a question', async () => {
      await fresh()
      const request = { pusher: 'relay', tokens: [], window: WINDOW }
      const ask = async (backlog: readonly [boolean, boolean, boolean] | null) =>
        passed(await race.push(QUEUE, tag, { ...request, backlog })).backlog
      expect(await ask([true, false, true])).toEqual([true, false, true])
      expect((await push(race, tag, tokens(1, 1))).backlog).toEqual([true, false, true])
      expect(await ask(null)).toEqual([true, false, true])
      expect(await ask([false, false, false])).toEqual([false, false, false])
    })

    test('a token twice in one call tears the epoch', async () => {
      await fresh()
      const request = { pusher: 'p1', tokens: [token(1), token(1)], backlog: null, window: WINDOW }
      expect((await race.push(QUEUE, tag, request)).refused?.why).toBe('TORN')
      expect((await race.audit(QUEUE, tag, 0, [])).refused?.why).toBe('TORN')
    })

    test('the bell rings for the one who parked, once', async () => {
      await fresh()
      const rung = waitForBell(race)
      await push(race, tag, tokens(1, 1))
      expect(rung.count).toBe(0)
      await take(race, tag, 'a', 1, 2)
      await push(race, tag, tokens(2, 1))
      await push(race, tag, tokens(3, 1))
      await rung.once
      await race.identity(QUEUE)
      expect(rung.count).toBe(1)
      rung.stop()
    })
  })

  describe('take', () => {
    test('a doubled call takes nothing, and its settled fields are forgotten all the same', async () => {
      await fresh()
      await push(race, tag, tokens(1, 4))
      expect(await take(race, tag, 'a', 1, 2)).toEqual([1, 2])
      expect(await take(race, tag, 'a', 1, 2, [1])).toBe('dup')
      expect(await holdings(race, tag, 'a', 1)).toEqual([2])
      expect(await take(race, tag, 'a', 2, 2, [2])).toEqual([3, 4])
    })

    test('numbers count per session', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2))
      expect(await take(race, tag, 'a', 7, 1)).toEqual([1])
      expect(await take(race, tag, 'b', 1, 1)).toEqual([2])
    })

    test('a session that was declared dead takes nothing and forgets nothing', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2))
      await take(race, tag, 'a', 1, 1)
      await holdings(race, tag, 'a', 'dead')
      expect(await take(race, tag, 'a', 99, 1, [1])).toBe('dead')
      expect(await holdings(race, tag, 'a', 99)).toEqual([1])
      expect(await take(race, tag, 'b', 1, 5)).toEqual([2])
    })

    test('a paused queue gives nothing, uses the number up, and rings when it goes on', async () => {
      await fresh({ paused: true })
      await push(race, tag, tokens(1, 1))
      expect(await take(race, tag, 'a', 1, 1)).toBe('paused')
      const rung = waitForBell(race)
      passed(await race.config(QUEUE, tag, { version: 2, paused: false, lowerLaneShare: 16 }))
      await rung.once
      rung.stop()
      expect(await take(race, tag, 'a', 1, 1)).toBe('dup')
      expect(await take(race, tag, 'a', 2, 1)).toEqual([1])
    })

    test('asked for nothing it only settles', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2))
      await take(race, tag, 'a', 1, 1)
      expect(await take(race, tag, 'a', 2, 0, [1])).toEqual([])
      expect(await holdings(race, tag, 'a', 2)).toEqual([])
      expect((await subject.read()).state?.parked).toBe(false)
    })

    test('urgent lanes go first, and a lower lane gets its share', async () => {
      await fresh({ lowerLaneShare: 4 })
      await push(race, tag, [...tokens(1, 20, 0), ...tokens(101, 5, 1), ...tokens(201, 5, 2)])
      const taken = (await take(race, tag, 'a', 1, 12)) as number[]
      expect(taken.map((lease) => Math.floor(lease / 100))).toEqual([0, 0, 2, 1, 0, 2, 0, 1, 2, 0, 0, 1])
      const byOnes: number[] = []
      for (let c = 2; c < 14; c++) byOnes.push(...((await take(race, tag, 'a', c, 1)) as number[]))
      expect(byOnes.filter((lease) => lease < 100)).toHaveLength(8)
    })

    test('share 0 is strict order', async () => {
      await fresh({ lowerLaneShare: 0 })
      await push(race, tag, [...tokens(201, 2, 2), ...tokens(101, 2, 1), ...tokens(1, 40, 0)])
      const taken = (await take(race, tag, 'a', 1, 44)) as number[]
      expect(taken.slice(39)).toEqual([40, 101, 102, 201, 202])
    })

    test('batches of 1000 with bodies of 4 KiB, settled in one call', async () => {
      await fresh()
      const list = Array.from({ length: 1_000 }, (_, at) => token(at + 1, { body: 'x'.repeat(4_096) }))
      await push(race, tag, list)
      const reply = passed(await race.take(QUEUE, tag, { session: session('a'), c: 1, most: 1_000, done: [] }))
      if (reply.kind !== 'taken') throw new Error(reply.kind)
      expect(leasesOf(reply.texts)).toEqual(list.map(({ lease }) => lease))
      expect(reply.texts[999]).toBe(list[999]!.text)
      expect(await holdings(race, tag, 'a', 1)).toHaveLength(1_000)
      await take(race, tag, 'a', 2, 1, leasesOf(reply.texts))
      expect([...(await subject.read()).held.keys()]).toEqual(['#'])
    })
  })

  describe('hand-overs', () => {
    const heard: Handed[] = []
    let deafen: () => void
    let number = 0

    beforeAll(async () => {
      const stops = await Promise.all(
        ['a', 'b'].map((who) =>
          race.hear!(
            session(who),
            (handed) => heard.push(handed),
            () => undefined,
          ),
        ),
      )
      deafen = () => stops.forEach((stop) => stop())
    })
    afterAll(() => deafen())

    /** A take of an idle session that stands; answers whether the one before it was answered. */
    async function stand(who: string, c: number, options: Partial<Stand> = {}): Promise<boolean> {
      const stands = { claimNo: ++number, most: 8, isLast: true, ...options }
      const reply = passed(await race.take(QUEUE, tag, { session: session(who), c, most: 50, done: [], stands }))
      expect(reply).toMatchObject({ kind: 'taken', texts: [] })
      return reply.kind === 'taken' && reply.answered === true
    }

    async function next(): Promise<Handed> {
      await expect.poll(() => heard.length).toBeGreaterThan(0)
      return heard.shift()!
    }

    /** What comes now waits in its lane. */
    async function isLeft(first: number): Promise<void> {
      const { depths } = await push(race, tag, tokens(first, 1))
      expect([depths, heard]).toEqual([[0, 1, 0], []])
    }

    test('a take that stands is answered by the next push, once, and the take after it is told', async () => {
      await fresh()
      expect(await stand('a', 1)).toBe(false)
      expect((await push(race, tag, tokens(1, 2))).depths).toEqual([0, 0, 0])
      const { texts, ...handed } = await next()
      expect(handed).toEqual({ queue: QUEUE, tag, c: 1, claimNo: number })
      expect(leasesOf(texts)).toEqual([1, 2])
      await isLeft(3)
      const reply = await race.take(QUEUE, tag, { session: session('a'), c: 2, most: 5, done: [] })
      expect(reply.value).toMatchObject({ kind: 'taken', answered: true })
      expect(await holdings(race, tag, 'a', 2)).toEqual([1, 2, 3])
      expect(await take(race, tag, 'a', 3, 5, [1, 2, 3])).toEqual([])
      expect(passed(await race.take(QUEUE, tag, { session: session('a'), c: 4, most: 5, done: [] }))).toEqual({
        kind: 'taken',
        texts: [],
      })
    })

    test('a pause tells as well', async () => {
      await fresh()
      await stand('a', 1)
      await push(race, tag, tokens(1, 1))
      await next()
      await race.config(QUEUE, tag, { version: 2, paused: true, lowerLaneShare: 16 })
      const reply = await race.take(QUEUE, tag, { session: session('a'), c: 2, most: 5, done: [] })
      expect(reply.value).toEqual({ kind: 'paused', answered: true })
    })

    test('the first in the order of lanes are handed over, the rest waits and rings', async () => {
      await fresh()
      await stand('a', 1, { most: 2 })
      const [low, normal, high, other] = [2, 1, 0, 1].map((lane, at) => token(at + 1, { lane: lane as Lane }))
      const { depths } = await push(race, tag, [low!, normal!, high!, other!])
      expect(depths).toEqual([0, 1, 1])
      expect(leasesOf((await next()).texts)).toEqual([3, 2])
      expect(await take(race, tag, 'b', 1, 5)).toEqual([4, 1])
    })

    test('tokens that are late, doubled or revoked are not handed over, and the take still stands', async () => {
      await fresh({ firstLease: 10 })
      await push(race, tag, tokens(10, 1), 'p2')
      await take(race, tag, 'b', 1, 5)
      await take(race, tag, 'b', 2, 5, [10])
      await stand('a', 1)
      await push(race, tag, tokens(5, 1), 'p2')
      await push(race, tag, tokens(10, 1), 'p2')
      expect(passed(await race.revoke(QUEUE, tag, [fieldOf(11)]))).toEqual(['absent'])
      await push(race, tag, tokens(11, 1), 'p2')
      expect(heard).toEqual([])
      await push(race, tag, tokens(12, 1), 'p2')
      expect(leasesOf((await next()).texts)).toEqual([12])
    })

    test('nothing is handed over where something waits: it goes first', async () => {
      await fresh()
      await push(race, tag, tokens(1, 1))
      const stands = { claimNo: ++number, most: 8, isLast: true }
      await race.take(QUEUE, tag, { session: session('a'), c: 1, most: 0, done: [], stands })
      expect((await push(race, tag, tokens(2, 1))).depths).toEqual([0, 2, 0])
      expect(heard).toEqual([])
    })

    test('nothing is handed over from a queue that is paused', async () => {
      await fresh()
      await stand('a', 1)
      await race.config(QUEUE, tag, { version: 2, paused: true, lowerLaneShare: 16 })
      await isLeft(1)
    })

    test.each([
      ['a later take', () => take(race, tag, 'a', 2, 0)],
      ['a look', () => holdings(race, tag, 'a', 1)],
      ['its death', () => holdings(race, tag, 'a', 'dead')],
    ])('nothing is handed over after %s of the session', async (_, happen) => {
      await fresh()
      await stand('a', 1)
      await happen()
      await isLeft(1)
    })

    test('a claim stands once its last take has come, and no longer when a later take says so', async () => {
      await fresh()
      await stand('a', 1, { isLast: false })
      await isLeft(1)
      await take(race, tag, 'b', 1, 1)
      await stand('a', 2)
      const request = { session: session('a'), c: 3, most: 0, done: [], stands: 'no-longer' } as const
      await race.take(QUEUE, tag, request)
      await isLeft(2)
    })

    test('who took something does not stand', async () => {
      await fresh()
      await push(race, tag, tokens(1, 1))
      const stands = { claimNo: ++number, most: 8, isLast: true }
      const reply = await race.take(QUEUE, tag, { session: session('a'), c: 1, most: 5, done: [], stands })
      expect(reply.value).toMatchObject({ kind: 'taken', texts: [expect.any(String)] })
      await isLeft(2)
    })

    test('nothing is handed over to a session that does not hear it', async () => {
      await fresh()
      await stand('deaf', 1)
      await isLeft(1)
    })

    test('the last that stood gets it; the one before is rung for what comes next', async () => {
      await fresh()
      await stand('b', 1)
      await stand('a', 1)
      await push(race, tag, tokens(1, 1))
      expect((await next()).claimNo).toBe(number)
      await isLeft(2)
      expect(await take(race, tag, 'b', 2, 5)).toEqual([2])
    })
  })

  describe('holdings and drop', () => {
    test('after it a late take with a number up to that one cannot land', async () => {
      await fresh()
      await push(race, tag, tokens(1, 4))
      await take(race, tag, 'a', 1, 1)
      expect(await holdings(race, tag, 'a', 2)).toEqual([1])
      expect(await take(race, tag, 'a', 2, 1)).toBe('dup')
      expect(await holdings(race, tag, 'a', 1)).toEqual([1])
      expect(await take(race, tag, 'a', 2, 1)).toBe('dup')
      expect(await take(race, tag, 'a', 3, 1)).toEqual([2])
    })

    test('pages list everything the session holds, and nothing of others', async () => {
      await fresh()
      for (let at = 0; at < 5; at++) await push(race, tag, tokens(at * 1_000 + 1, 1_000))
      for (let c = 1; c <= 4; c++) {
        await take(race, tag, 'a', c, 600)
        await take(race, tag, 'ab', c, 400)
      }
      const own = await holdings(race, tag, 'a', 4)
      expect(new Set(own).size).toBe(2_400)
      expect(await holdings(race, tag, 'ab', 4)).toHaveLength(1_600)
    })

    test('drop forgets what this session holds, and nothing else', async () => {
      await fresh()
      await push(race, tag, tokens(1, 4))
      await take(race, tag, 'a', 1, 2)
      await take(race, tag, 'b', 1, 1)
      passed(await race.drop(QUEUE, tag, session('a'), [1, 3, 4, 77].map(fieldOf), false))
      expect(await holdings(race, tag, 'a', 1)).toEqual([2])
      expect(await holdings(race, tag, 'b', 1)).toEqual([3])
      expect(await take(race, tag, 'b', 2, 5)).toEqual([4])
    })

    test('a session that came back after its last drop is not forgotten by a second one', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2))
      await holdings(race, tag, 'a', 'dead')
      passed(await race.drop(QUEUE, tag, session('a'), [], true))
      expect(await take(race, tag, 'a', 5, 1)).toEqual([1])
      passed(await race.drop(QUEUE, tag, session('a'), [], true))
      expect(passed(await race.audit(QUEUE, tag, 0, [])).sessions).toEqual(['a'])
    })

    test('the audit names the holder of a field it is asked for, whatever became of the session', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2))
      await take(race, tag, 'a', 5, 1)
      await holdings(race, tag, 'a', 'dead')
      passed(await race.drop(QUEUE, tag, session('a'), [], true))
      const reply = passed(await race.audit(QUEUE, tag, 0, [1, 2].map(fieldOf)))
      expect(reply).toEqual({ absent: [], sessions: ['a'] })
    })

    test('the last drop forgets the session; a take after it shows up in the audit again', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2))
      await take(race, tag, 'a', 5, 1)
      await holdings(race, tag, 'a', 'dead')
      passed(await race.drop(QUEUE, tag, session('a'), [fieldOf(1)], true))
      expect(passed(await race.audit(QUEUE, tag, 0, [])).sessions).toEqual([])
      expect(await take(race, tag, 'a', 5, 1)).toEqual([2])
      expect(passed(await race.audit(QUEUE, tag, 0, [])).sessions).toEqual(['a'])
    })
  })

  describe('revoke', () => {
    test('waiting, absent and in flight', async () => {
      await fresh()
      await push(race, tag, tokens(1, 3))
      await take(race, tag, 'a', 1, 1)
      const answers = passed(await race.revoke(QUEUE, tag, [1, 2, 50].map(fieldOf)))
      expect(answers).toEqual([{ session: 'a' }, 'revoked', 'absent'])
      expect(passed(await race.revoke(QUEUE, tag, [fieldOf(2)]))).toEqual(['revoked'])
    })

    test('whoever wants one token gets it, also behind thousands that were revoked', async () => {
      await fresh()
      for (const first of [1, 1_001, 2_001]) await push(race, tag, tokens(first, 1_000))
      await push(race, tag, [...tokens(4_001, 2, 0), ...tokens(4_003, 1, 2)])
      for (const first of [1, 1_001, 2_001]) {
        const leases = Array.from({ length: first === 2_001 ? 997 : 1_000 }, (_, index) => first + index)
        passed(await race.revoke(QUEUE, tag, leases.map(fieldOf)))
      }
      passed(await race.revoke(QUEUE, tag, [4_001, 2_999].map(fieldOf)))
      expect(await take(race, tag, 'a', 1, 1)).toEqual([4_002])
      expect(await take(race, tag, 'a', 2, 1)).toEqual([2_998])
      expect(await take(race, tag, 'a', 3, 5)).toEqual([3_000, 4_003])
      const { held } = await subject.read()
      expect(held.size).toBe(5)
    })

    test('a revoked token is never taken, and is forgotten on its turn', async () => {
      await fresh()
      await push(race, tag, tokens(1, 10))
      passed(await race.revoke(QUEUE, tag, [1, 2, 4, 9].map(fieldOf)))
      expect(await take(race, tag, 'a', 1, 3)).toEqual([3, 5, 6])
      expect(await take(race, tag, 'a', 2, 9, [3, 5, 6])).toEqual([7, 8, 10])
      await take(race, tag, 'a', 3, 0, [7, 8, 10])
      expect([...(await subject.read()).held.keys()]).toEqual(['#'])
    })

    test('an absent one cannot come later', async () => {
      await fresh()
      expect(passed(await race.revoke(QUEUE, tag, [fieldOf(20)]))).toEqual(['absent'])
      expect((await push(race, tag, tokens(19, 3))).depths).toEqual([0, 1, 0])
      expect(await take(race, tag, 'a', 1, 9)).toEqual([21])
    })

    test('leases beyond 2^48 stay exact', async () => {
      const large = 2 ** 50 + 1
      await fresh({ firstLease: large })
      passed(await race.revoke(QUEUE, tag, [fieldOf(large)]))
      await push(race, tag, tokens(large, 3))
      expect(await take(race, tag, 'a', 1, 9)).toEqual([large + 1, large + 2])
    })
  })

  describe('audit', () => {
    test('lists what is absent or revoked, and the sessions', async () => {
      await fresh()
      await push(race, tag, tokens(1, 4))
      await take(race, tag, 'a', 1, 1)
      await take(race, tag, 'b', 1, 1)
      await take(race, tag, 'b', 2, 0, [2])
      passed(await race.revoke(QUEUE, tag, [fieldOf(3)]))
      const reply = passed(await race.audit(QUEUE, tag, 0, [1, 2, 3, 4, 5].map(fieldOf)))
      expect(reply.absent).toEqual([2, 3, 5].map(fieldOf))
      expect([...reply.sessions].sort()).toEqual(['a', 'b'])
    })

    test('raises the floor, never lowers it, and forgets pushers below it', async () => {
      await fresh()
      await push(race, tag, tokens(1, 2), 'old')
      await push(race, tag, tokens(30, 1), 'new')
      passed(await race.audit(QUEUE, tag, 20, []))
      passed(await race.audit(QUEUE, tag, 10, []))
      const { state } = await subject.read()
      expect(state?.floor).toBe(20)
      expect([...(state?.pushers ?? [])]).toEqual([['new', 30]])
      expect((await push(race, tag, tokens(18, 4), 'old')).depths).toEqual([0, 5, 0])
    })
  })

  describe('config', () => {
    test('an older version changes nothing', async () => {
      await fresh({ version: 5 })
      await push(race, tag, tokens(1, 3))
      passed(await race.config(QUEUE, tag, { version: 7, paused: true, lowerLaneShare: 16 }))
      passed(await race.config(QUEUE, tag, { version: 6, paused: false, lowerLaneShare: 16 }))
      passed(await race.config(QUEUE, tag, { version: 7, paused: false, lowerLaneShare: 16 }))
      expect(await take(race, tag, 'a', 1, 1)).toBe('paused')
      passed(await race.config(QUEUE, tag, { version: 8, paused: false, lowerLaneShare: 3 }))
      expect(await take(race, tag, 'a', 2, 1)).toEqual([1])
      expect((await subject.read()).state?.config).toEqual({ version: 8, paused: false, lowerLaneShare: 3 })
    })
  })
})

function waitForBell(race: Race) {
  const found = { count: 0, once: Promise.resolve(), stop: () => undefined as void }
  found.once = new Promise((resolve) => {
    found.stop = race.listen((queue) => {
      expect(queue).toBe(QUEUE)
      found.count += 1
      resolve()
    })
  })
  return found
}
