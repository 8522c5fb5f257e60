// Somebody else writes into the keys that the hybrid has in Redis. What it finds there is a hint and no more: the jobs are
// in PostgreSQL. Left out is what only somebody could write who knows the format and means harm, see docs/hybrid.md.
import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { needless, refusals } from '../refusals.ts'
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'
import { KIND, QUEUE } from '../systems/millrace.ts'
import { epochOf, flowsThroughRedis, partKey } from '../through-redis.ts'

const BLOW_EVERY_MS = 200
const REACTION_S = 5
const STATE_FIELDS = [
  'epoch',
  'number',
  'identity',
  'floor',
  'config',
  'share',
  'revoked',
  'passed',
  'backlog',
  'normal',
]

const LASTING = ['revoked', 'p:oops', 's:oops']

type Command = readonly (string | number)[]

export const GARBAGE_SCENARIOS: readonly Scenario[] = [
  {
    name: 'garbage-hints',
    says: 'random and malformed tokens, made-up jobs, wrong numbers and wrong types are written into the keys of Redis, five times a second',
    backends: ['hybrid'],
    peers: 'never',
    async strike(stage, { phaseMs }) {
      const before = refusals(stage).length
      const epoch = await epochOf(stage.place)
      const atMs = Date.now()
      for (let blow = 0; Date.now() < atMs + 2 * phaseMs || blow < BLOWS.length; blow++) {
        await strikeWith(stage, BLOWS[blow % BLOWS.length]!())
        await wait(BLOW_EVERY_MS)
      }
      if ((await epochOf(stage.place)) === epoch) throw new Error('nobody has noticed anything')
      // Nothing comes after it that would be noticed sooner and clear it away: this one has to be found by itself.
      await flowsThroughRedis(stage)
      await strikeWith(stage, [
        'HSET',
        partKey(QUEUE, 'state'),
        ...LASTING.flatMap((field) => [field, `oops ${noise()}`]),
      ])
      return { atMs, backMs: Date.now(), robbed: [], flaws: needless(refusals(stage), before) }
    },
    promise: { recoveryMaxS: REACTION_S, ratioMin: 0.8 },
  },
]

const BLOWS: readonly (() => Command)[] = [
  () => ['LPUSH', lane(), noise()],
  () => ['RPUSH', lane(), noise(), '', ' ', `${noise()} ${noise()}`],
  // A job that nobody has enqueued, and that could be run.
  () => ['LPUSH', lane(), `${randomField()} 100 0 0 5 30000 ${Date.now()} 0 0 - ${KIND} {"longMs":0}`],
  // The same as far as Redis can tell; what follows its name is no job.
  () => {
    const field = randomField()
    const keys = [partKey(QUEUE, 'normal'), partKey(QUEUE, 'held'), partKey(QUEUE, 'state')]
    return ['EVAL', COUNTED, keys.length, ...keys, field, `${field} ${noise()}`]
  },
  () => ['LSET', lane(), 0, noise()],
  () => ['HSET', partKey(QUEUE, 'held'), randomField(), noise(), noise(), `${noise()}/1`],
  () => ['HSET', partKey(QUEUE, 'state'), `p:${noise()}`, noise(), `s:${noise()}`, noise()],
  () => ['HSET', partKey(QUEUE, 'state'), STATE_FIELDS[randomInt(STATE_FIELDS.length)]!, noise()],
  () => ['ZADD', lane(), 1, randomUUID(), 2, noise()],
  () => ['SET', partKey(QUEUE, (['state', 'held', 'normal'] as const)[randomInt(3)]!), noise()],
  () => ['PUBLISH', 'millrace:bell', noise()],
]

/** Counted in, as a token that was pushed would be. */
const COUNTED = `redis.call('LPUSH', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], '')
redis.call('HINCRBY', KEYS[3], 'normal', 1)`

/** A command may not fit the type that an earlier one has left there. */
async function strikeWith({ servers }: Stage, command: Command): Promise<void> {
  await servers.redis.command(...command).catch((error: unknown) => {
    if (!/WRONGTYPE|no such key|not an integer/.test(String(error))) throw error
  })
}

function lane(): string {
  return partKey(QUEUE, (['high', 'normal', 'low'] as const)[randomInt(3)]!)
}

function randomField(): string {
  return `${randomUUID()}:${randomInt(2 ** 40)}`
}

function noise(): string {
  return randomBytes(randomInt(1, 60)).toString('latin1')
}
