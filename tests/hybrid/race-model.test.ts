// The scripts and the model that simulations run on are the same machine: random sequences of calls get the same answers
// from both, leave the same data behind, and never break what must hold of them.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import { handsName } from '../../src/backends/hybrid/keys.ts'
import type { Gated, Handed, Race } from '../../src/backends/hybrid/ports.ts'
import { raceProblems } from '../../src/backends/hybrid/race-invariants.ts'
import type { Lane } from '../../src/core/priority.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { QUEUE, connectRace, fieldOf, session, token } from './race-setup.ts'
import type { RedisRace } from './race-setup.ts'

const RUNS = 150
const CALLS_MAX = 60
const LEASES_MAX = 60
const PARTS = ['state', 'high', 'normal', 'low', 'held'] as const

const lease = fc.integer({ min: 1, max: LEASES_MAX })
const leases = fc.uniqueArray(lease, { maxLength: 12 })
const who = fc.constantFrom('a', 'b', 'ab')
const lane = fc.constantFrom<Lane>(0, 1, 1, 2)
const bits = fc.option(fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()), { nil: null })
const c = fc.integer({ min: 1, max: 12 })
const common = { paused: fc.boolean(), lowerLaneShare: fc.integer({ min: 0, max: 4 }) }

/** `old` calls name an epoch that is not the one opened last. */
const call = fc.oneof(
  fc.record({
    kind: fc.constant('push'),
    old: rarely(),
    pusher: fc.constantFrom('p1', 'p2'),
    tokens: fc.uniqueArray(fc.record({ lease, lane }), { maxLength: 12, selector: (one) => one.lease }),
    backlog: bits,
    window: fc.constantFrom(4, 100, 100),
  }),
  fc.record({ kind: fc.constant('push-next'), count: fc.integer({ min: 1, max: 24 }), lane }),
  fc.record({ kind: fc.constant('take'), old: rarely(), who, c, most: fc.integer({ min: 0, max: 8 }), done: leases }),
  // More than fit into one text of the reply.
  fc.record({ kind: fc.constant('take-next'), who, most: fc.integer({ min: 0, max: 40 }), settles: fc.boolean() }),
  fc.record({ kind: fc.constant('stand'), who, most: fc.integer({ min: 1, max: 8 }), isLast: often(), no: often() }),
  fc.record({ kind: fc.constant('push-next'), count: fc.integer({ min: 1, max: 3 }), lane }),
  fc.record({ kind: fc.constant('holdings'), old: rarely(), who, c: fc.oneof(c, fc.constant('dead' as const)) }),
  fc.record({ kind: fc.constant('drop'), old: rarely(), who, fields: leases, last: fc.boolean() }),
  fc.record({ kind: fc.constant('revoke'), old: rarely(), fields: leases }),
  fc.record({ kind: fc.constant('audit'), old: rarely(), below: fc.integer({ min: 0, max: 20 }), fields: leases }),
  fc.record({ kind: fc.constant('config'), old: rarely(), version: fc.integer({ min: 1, max: 9 }), ...common }),
  fc.record({ kind: fc.constant('open'), step: fc.constantFrom(-1, 0, 1, 1), firstLease: lease, ...common }),
  fc.record({ kind: fc.constant('lose'), really: rarely(), part: fc.constantFrom(...PARTS) }),
)
type Call = typeof call extends fc.Arbitrary<infer One> ? One : never

function rarely(): fc.Arbitrary<boolean> {
  return fc.integer({ min: 0, max: 19 }).map((number) => number === 0)
}

function often(): fc.Arbitrary<boolean> {
  return fc.integer({ min: 0, max: 4 }).map((number) => number > 0)
}

/** Of `who` those that hear what is handed over. */
const EARS = ['a', 'ab']

let redis: RedisRace

beforeAll(async () => {
  // However slow a test is, what stands there stands in the model.
  redis = await connectRace({ url: (await sharedRedis()).url }, { standMs: 60_000 })
})

afterAll(() => redis.race.stop())

test('the scripts do what the model does, call by call', async () => {
  const identity = await redis.race.identity(QUEUE)
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 5, maxLength: CALLS_MAX }), async (calls) => {
      await redis.link.command(
        'UNLINK',
        ...redis.keys(),
        ...['a', 'b', 'ab'].map((who) => handsName(redis.prefix, who)),
      )
      const model = new MemoryRace({ identity })
      const pair = new Pair(redis, model)
      const stop = await pair.listen()
      await pair.run({ kind: 'open', step: 1, firstLease: 1, paused: false, lowerLaneShare: 3 })
      for (const one of calls) {
        await pair.run(one)
        const real = await redis.read()
        expect(raceProblems(real)).toEqual([])
        expect(raceProblems(model.inspect(QUEUE))).toEqual([])
        if (!pair.isTorn) expect(pair.plain(real)).toEqual(pair.plain(model.inspect(QUEUE)))
      }
      await pair.heardAlike()
      stop()
    }),
    { numRuns: RUNS },
  )
}, 120_000)

/** Makes each call on both sides; births differ, so each has its own tags. */
class Pair {
  /** Scripts stop where they find a loss, the model before: from then on only answers are compared. */
  isTorn = false
  readonly #redis: RedisRace
  readonly #model: MemoryRace
  #tags: readonly [string, string] = ['', '']
  #old: readonly [string, string] = ['0.0', '0.0']
  #epoch = 1
  #lastLease = LEASES_MAX
  #claims = new Map<string, number>()
  #taken: string[] = []
  readonly #heard: Handed[][] = [[], []]

  constructor(redis: RedisRace, model: MemoryRace) {
    this.#redis = redis
    this.#model = model
  }

  async listen(): Promise<() => void> {
    const stops: (() => void)[] = []
    for (const who of EARS.map(session)) {
      for (const [at, race] of [this.#redis.race, this.#model].entries()) {
        const hear = (handed: Handed): void => void this.#heard[at]!.push({ ...handed, tag: '' })
        stops.push(await race.hear!(who, hear, () => undefined))
      }
    }
    return () => stops.forEach((stop) => stop())
  }

  async heardAlike(): Promise<void> {
    const [real, ours] = this.#heard
    await expect.poll(() => real!.length).toBe(ours!.length)
    expect(real).toEqual(ours)
  }

  async run(one: Call): Promise<void> {
    switch (one.kind) {
      case 'open':
        return this.#open(one)
      case 'lose':
        if (!one.really) return
        await this.#redis.link.command('UNLINK', this.#redis.keys()[PARTS.indexOf(one.part)]!)
        this.#model.evict(QUEUE, one.part)
        return
      case 'push': {
        const tokens = one.tokens.map((item) => token(item.lease, item))
        return this.#same(one.old, (race, tag) => race.push(QUEUE, tag, { ...one, tokens }))
      }
      case 'push-next': {
        const tokens = Array.from({ length: one.count }, () => token(++this.#lastLease, one))
        const request = { pusher: 'p3', tokens, backlog: null, window: 100 }
        return this.#same(false, (race, tag) => race.push(QUEUE, tag, request))
      }
      case 'take': {
        // Only what was taken is ever settled.
        const { held } = this.#model.inspect(QUEUE)
        const done = one.done.map(fieldOf).filter((field) => held.get(field)?.includes('/') ?? true)
        const request = { session: session(one.who), c: one.c, most: one.most, done }
        return this.#same(one.old, (race, tag) => race.take(QUEUE, tag, request))
      }
      case 'take-next': {
        const next = (this.#claims.get(one.who) ?? 12) + 1
        this.#claims.set(one.who, next)
        const done = one.settles ? this.#taken.splice(0) : []
        const request = { session: session(one.who), c: next, most: one.most, done }
        return this.#same(false, async (race, tag) => {
          const reply = await race.take(QUEUE, tag, request)
          if (race === this.#model && reply.value?.kind === 'taken') {
            this.#taken.push(...reply.value.texts.map((text) => text.slice(0, text.indexOf(' '))))
          }
          return reply
        })
      }
      case 'stand': {
        const { who: name, most, isLast, no } = one
        const next = (this.#claims.get(name) ?? 12) + 1
        this.#claims.set(name, next)
        const stands = no ? { claimNo: next, most, isLast } : ('no-longer' as const)
        const request = { session: session(name), c: next, most, done: [], stands }
        return this.#same(false, (race, tag) => race.take(QUEUE, tag, request))
      }
      case 'holdings': {
        const request = { session: session(one.who), c: one.c, cursor: '0' }
        return this.#same(one.old, async (race, tag) => {
          const { refused, value } = await race.holdings(QUEUE, tag, request)
          return refused === null ? { refused, value: [...value.fields].sort() } : { refused, value }
        })
      }
      case 'drop':
        return this.#same(one.old, (race, tag) =>
          race.drop(QUEUE, tag, session(one.who), one.fields.map(fieldOf), one.last),
        )
      case 'revoke':
        return this.#same(one.old, (race, tag) => race.revoke(QUEUE, tag, one.fields.map(fieldOf)))
      case 'audit':
        return this.#same(one.old, async (race, tag) => {
          const { refused, value } = await race.audit(QUEUE, tag, one.below, one.fields.map(fieldOf))
          if (refused !== null) return { refused, value }
          return { refused, value: { ...value, sessions: [...value.sessions].sort() } }
        })
      case 'config':
        return this.#same(one.old, (race, tag) => race.config(QUEUE, tag, one))
    }
  }

  /** Without what differs by nature: births, and the order of fields. */
  plain({ state, lanes, held }: ReturnType<MemoryRace['inspect']>) {
    return {
      lanes,
      held: [...held].filter(([field]) => field !== '#').sort(),
      state: state && {
        ...state,
        tag: '',
        birth: '',
        sessions: [...state.sessions].sort(),
        pushers: [...state.pushers].sort(),
      },
    }
  }

  async #open({ step, firstLease, paused, lowerLaneShare }: Extract<Call, { kind: 'open' }>): Promise<void> {
    const epoch = Math.max(1, this.#epoch + step)
    const redisId = await this.#redis.race.identity(QUEUE)
    const request = { epoch, redisId, firstLease, version: 1, paused, lowerLaneShare }
    const real = await this.#redis.race.open(QUEUE, request)
    const ours = await this.#model.open(QUEUE, request)
    expect(real.kind).toBe(ours.kind)
    if (real.kind !== 'open' || ours.kind !== 'open') return expect(real).toEqual(ours)
    const tags = [`${epoch}.${real.birth}`, `${epoch}.${ours.birth}`] as const
    if (tags[0] !== this.#tags[0]) {
      this.#old = this.#tags
      this.#tags = tags
      this.isTorn = false
    }
    this.#epoch = epoch
  }

  async #same<Value>(old: boolean, make: (race: Race, tag: string) => Promise<Gated<Value>>): Promise<void> {
    const tags = old ? this.#old : this.#tags
    const real = await make(this.#redis.race, tags[0])
    const ours = await make(this.#model, tags[1])
    // The tag found stands for the same epoch, under another birth.
    const number = (reply: Gated<Value>) =>
      reply.refused === null ? reply : { ...reply.refused, epoch: reply.refused.epoch.split('.')[0] }
    expect(number(real)).toEqual(number(ours))
    if (real.refused?.why === 'TORN') this.isTorn = true
  }
}
