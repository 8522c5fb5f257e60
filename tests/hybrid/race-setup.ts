// A race on a real Redis for tests, tokens to push into it, and a look at what it keeps there.
import { randomUUID } from 'node:crypto'
import { queueKeys } from '../../src/backends/hybrid/keys.ts'
import type { Gated, OpenRequest, Race, Token } from '../../src/backends/hybrid/ports.ts'
import type { RaceQueue, StandingTake } from '../../src/backends/hybrid/race-model.ts'
import { redisRace } from '../../src/backends/hybrid/redis-race.ts'
import type { RedisRaceOptions } from '../../src/backends/hybrid/redis-race.ts'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import type { RedisLink, RedisServer } from '../../src/backends/redis/link.ts'
import type { WorkerId } from '../../src/core/job.ts'
import type { Lane } from '../../src/core/priority.ts'
import { silentLogger } from '../../src/runtime/logger.ts'

export const QUEUE = 'mail'
export const WINDOW = 10_000

export interface RedisRace {
  readonly race: Race
  readonly link: RedisLink
  readonly prefix: string
  /** What Redis has, in the words of the model. */
  read(queue?: string): Promise<RaceQueue>
  keys(queue?: string): readonly string[]
}

export async function connectRace(
  server: RedisServer,
  options: Partial<Pick<RedisRaceOptions, 'prefix' | 'standMs'>> = {},
): Promise<RedisRace> {
  const { prefix = `t${randomUUID().slice(0, 8)}`, ...others } = options
  const link = createLink({ server, name: 'race test', connectTimeoutMs: 5_000, logger: silentLogger })
  const race = redisRace({ link, prefix, ...others })
  await race.start()
  const keys = (queue = QUEUE): readonly string[] => queueKeys(prefix, queue)
  return { race, link, prefix, keys, read: (queue = QUEUE) => readQueue(link, keys(queue)) }
}

export function session(name: string): WorkerId {
  return name as WorkerId
}

export function token(lease: number, options: { readonly lane?: Lane; readonly body?: string } = {}): Token {
  const { lane = 1, body = '{"n":1}' } = options
  return { lane, lease, text: `${fieldOf(lease)} ${body}` }
}

export function tokens(first: number, count: number, lane: Lane = 1): Token[] {
  return Array.from({ length: count }, (_, index) => token(first + index, { lane }))
}

/** Ids that tell their lease, so that a failing test can be read. */
export function fieldOf(lease: number): string {
  return `00000000-0000-7000-8000-${String(lease).padStart(12, '0')}:${lease}`
}

export function leasesOf(texts: readonly string[]): number[] {
  return texts.map((text) => Number(text.slice(text.indexOf(':') + 1, text.indexOf(' '))))
}

/** Opens an epoch on the server that answers, and gives its tag. */
export async function openRace(race: Race, epoch = 1, options: Partial<OpenRequest> = {}): Promise<string> {
  const redisId = await race.identity(QUEUE)
  const request = { epoch, redisId, firstLease: 1, version: 1, paused: false, lowerLaneShare: 16, ...options }
  const reply = await race.open(QUEUE, request)
  if (reply.kind !== 'open') throw new Error(`open answered ${JSON.stringify(reply)}`)
  return `${epoch}.${reply.birth}`
}

export async function push(race: Race, tag: string, list: readonly Token[], pusher = 'p1') {
  return passed(await race.push(QUEUE, tag, { pusher, tokens: list, backlog: null, window: WINDOW }))
}

/** The leases taken, in order. */
export async function take(
  race: Race,
  tag: string,
  who: string,
  c: number,
  most: number,
  done: readonly number[] = [],
) {
  const request = { session: session(who), c, most, done: done.map(fieldOf) }
  const reply = passed(await race.take(QUEUE, tag, request))
  return reply.kind === 'taken' ? leasesOf(reply.texts) : reply.kind
}

/** All pages. */
export async function holdings(race: Race, tag: string, who: string, c: number | 'dead'): Promise<number[]> {
  const found: number[] = []
  let cursor = '0'
  do {
    const page = passed(await race.holdings(QUEUE, tag, { session: session(who), c, cursor }))
    found.push(...page.fields.map((field) => Number(field.slice(field.lastIndexOf(':') + 1))))
    cursor = page.cursor
  } while (cursor !== '0')
  return found.sort((a, b) => a - b)
}

export function passed<Value>(reply: Gated<Value>): Value {
  if (reply.refused !== null) throw new Error(`refused: ${JSON.stringify(reply.refused)}`)
  return reply.value
}

async function readQueue(link: RedisLink, keys: readonly string[]): Promise<RaceQueue> {
  const [stateKey = '', high = '', normal = '', low = '', heldKey = ''] = keys
  const list = async (key: string) => (await link.command('LRANGE', key, 0, -1)) as string[]
  const state = pairs(await link.command('HGETALL', stateKey))
  const held = pairs(await link.command('HGETALL', heldKey))
  const mark = held.get('#')
  // Behind the tag stands a remark that keeps Redis from packing the hash.
  if (mark !== undefined) held.set('#', mark.slice(0, mark.indexOf(' ')))
  return { state: stateOf(state), lanes: [await list(high), await list(normal), await list(low)], held }
}

function stateOf(fields: ReadonlyMap<string, string>): RaceQueue['state'] {
  if (fields.size === 0) return null
  const text = (name: string): string => fields.get(name) ?? ''
  const number = (name: string): number => Number(text(name))
  const named = (start: string): [string, string][] =>
    [...fields].filter(([name]) => name.startsWith(start)).map(([name, value]) => [name.slice(2), value])
  const [high = 0, normal = 0, low = 0] = text('passed').split(' ').map(Number)
  const bits = text('backlog')
  return {
    tag: text('epoch'),
    number: number('number'),
    birth: text('birth'),
    identity: text('identity'),
    floor: number('floor'),
    config: { version: number('config'), paused: text('paused') === '1', lowerLaneShare: number('share') },
    lengths: [number('high'), number('normal'), number('low')],
    passed: [high, normal, low],
    backlog: [bits[0] === '1', bits[1] === '1', bits[2] === '1'],
    parked: text('parked') === '1',
    stands: standingOf(text('stands')),
    sessions: new Map(named('s:').map(([name, last]) => [name, last === 'dead' ? last : Number(last)])),
    pushers: new Map(named('p:').map(([name, lease]) => [name, Number(lease)])),
  }
}

function standingOf(stands: string): StandingTake | null {
  const [, who = '', c, claimNo, most] = stands.split(' ')
  return stands === '' ? null : { session: session(who), c: Number(c), claimNo: Number(claimNo), most: Number(most) }
}

function pairs(reply: unknown): Map<string, string> {
  const list = reply as readonly string[]
  return new Map(Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at]!, list[2 * at + 1]!]))
}
