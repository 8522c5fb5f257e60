// What happens to the network between the processes and their stores: slow, silent, broken, answers lost.
import { unheard, wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import type { Link } from '../link.ts'
import type { Stage } from '../stage.ts'

const EVERYWHERE = ['postgres', 'redis', 'hybrid'] as const
const LATENCY_MS = 100
const BREAK_EVERY_MS = 500
const CUT_BYTES = 1_000
/** So many answers are lost, one of every so many statements, on each link. */
const LOST_REPLIES = 10
const LOST_EVERY = 15
const REACTION_S = 5

/** Clients that know the outcome of nothing repeat it; those that were told of an error may have to. */
const TOLERANT = { recoveryMaxS: REACTION_S } as const

export const LINK_SCENARIOS: readonly Scenario[] = [
  {
    name: 'link-latency',
    says: 'every link is 100 ms slower, both ways',
    backends: EVERYWHERE,
    peers: 'asked',
    goesOn: true,
    async strike(stage, { phaseMs }) {
      const atMs = Date.now()
      each(stage, ({ postgres, redis }) => [postgres?.delay(LATENCY_MS), redis?.delay(LATENCY_MS)])
      await wait(2 * phaseMs)
      each(stage, ({ postgres, redis }) => [postgres?.delay(0), redis?.delay(0)])
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: { ratioMin: 0.5 },
  },
  {
    name: 'link-blackhole',
    says: 'one of two workers hears nothing and is not heard for two ttls; nobody tells it so',
    backends: EVERYWHERE,
    peers: 'asked',
    async strike({ workers }, { ttlMs }) {
      const { link, pid } = workers[1]!
      link.postgres?.blackhole(true)
      link.redis?.blackhole(true)
      const atMs = Date.now()
      await wait(2 * ttlMs)
      link.postgres?.blackhole(false)
      link.redis?.blackhole(false)
      // What it had begun until it noticed is given to others.
      const backMs = Date.now()
      return { atMs, backMs, robbed: [{ pid, fromMs: atMs, toMs: backMs }] }
    },
    interrupts: true,
    promise: { recoveryMaxS: 10 },
  },
  {
    name: 'link-swallow',
    says: 'what is sent to Redis never arrives, for one ttl; answers would',
    backends: ['redis', 'hybrid'],
    peers: 'asked',
    async strike(stage, { ttlMs }) {
      const atMs = Date.now()
      each(stage, ({ redis }) => redis!.deafen(true))
      await wait(ttlMs)
      each(stage, ({ redis }) => redis!.deafen(false))
      return unheard(stage.place.backend, atMs, ttlMs)
    },
    promise: TOLERANT,
  },
  {
    name: 'link-reset',
    says: 'every connection is reset, twice a second',
    backends: EVERYWHERE,
    peers: 'asked',
    strike: (stage, { phaseMs }) =>
      again(phaseMs, () => each(stage, ({ postgres, redis }) => [postgres?.resetAll(), redis?.resetAll()])),
    promise: TOLERANT,
  },
  {
    name: 'link-cut',
    says: 'every connection breaks in the middle of an answer, after 1000 bytes, twice a second',
    backends: EVERYWHERE,
    peers: 'asked',
    strike: (stage, { phaseMs }) =>
      again(phaseMs, () =>
        each(stage, ({ postgres, redis }) => [postgres?.cutAfter(CUT_BYTES), redis?.cutAfter(CUT_BYTES)]),
      ),
    promise: TOLERANT,
  },
  {
    name: 'lost-commit-reply',
    says: 'PostgreSQL has committed, and the answer is lost, again and again on every link',
    backends: ['postgres', 'hybrid'],
    peers: 'asked',
    async strike(stage, { phaseMs }) {
      const atMs = Date.now()
      const losses = links(stage).map(({ postgres }) =>
        Array.from({ length: LOST_REPLIES }, (_, no) =>
          postgres!.lose({ statement: /\w/, lose: 'reply', after: (no + 1) * LOST_EVERY }),
        ),
      )
      await wait(2 * phaseMs)
      haveLost(losses)
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: TOLERANT,
  },
  {
    name: 'lost-script-reply',
    says: 'Redis has run a script, and the answer is lost, again and again on every link',
    backends: ['redis', 'hybrid'],
    peers: 'asked',
    async strike(stage, { phaseMs }) {
      const atMs = Date.now()
      const losses = links(stage).map((): Lost[] => [])
      for (let round = 0; round < LOST_REPLIES; round++) {
        for (const [no, { redis }] of links(stage).entries()) losses[no]!.push(redis!.loseReplies(/evalsha|fcall/i, 1))
        await wait((2 * phaseMs) / LOST_REPLIES)
      }
      haveLost(losses)
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: TOLERANT,
  },
]

function links({ workers, producers }: Stage): readonly Link[] {
  return [...workers, ...producers].map(({ link }) => link)
}

type Lost = { readonly count: number }

/** On every link, or the fault was none. */
function haveLost(byLink: readonly (readonly Lost[])[]): void {
  const spared = byLink.filter((losses) => losses.every(({ count }) => count === 0))
  if (spared.length > 0) throw new Error(`on ${spared.length} of ${byLink.length} links no answer was lost`)
}

function each(stage: Stage, strike: (link: Link) => unknown): void {
  for (const link of links(stage)) strike(link)
}

async function again(phaseMs: number, strike: () => void) {
  const atMs = Date.now()
  while (Date.now() < atMs + phaseMs) {
    strike()
    await wait(BREAK_EVERY_MS)
  }
  return { atMs, backMs: Date.now(), robbed: [] }
}
